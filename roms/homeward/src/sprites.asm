; Sprites: people in their poses, and putting two 8x16 sprites into OAM's shadow.
	.module sprites
	.include "hardware.inc"
	.include "data.inc"

	.area _CODE

; All sprites anew: after a map is entered and when a box has closed.
sprites_draw::
	call	player_draw
	call	villager_draw
	jp	quest_draw

; D = tile of a person in its pose, relative to the first, E = OAM attributes.
; A = facing, B = frames left of the step, C = foot. Changes HL.
pose::
	push	af
	add	a,a
	ld	e,a
	ld	d,#0
	ld	hl,#poses
	add	hl,de
	ld	a,(hl+)
	ld	d,a
	ld	e,(hl)			; 0x20 mirrors
	pop	hl			; H = facing
	ld	a,b
	sub	a,#5			; the middle 8 frames of a step show the
	cp	a,#8			; walking pose
	ret	nc
	ld	a,d
	add	a,#4
	ld	d,a
	ld	a,h
	cp	a,#LEFT
	ret	nc
	bit	0,c			; seen from front or back the other foot is
	ret	z			; the picture mirrored
	ld	e,#0x20
	ret

; Put a 16x16 picture at OAM's Y = B, X = C: tiles D to D+3, attributes E, into
; the two sprites at HL.
sprite_put::
	bit	5,e
	jr	nz,1$
	call	2$			; left half, right half
	inc	d
	inc	d
	jr	2$
1$:	inc	d			; mirrored: right half, left half
	inc	d
	call	2$
	dec	d
	dec	d
2$:	ld	a,b			; one sprite
	ld	(hl+),a
	ld	a,c
	ld	(hl+),a
	add	a,#8
	ld	c,a
	ld	a,d
	ld	(hl+),a
	ld	a,e
	ld	(hl+),a
	ret

; Take the 16x16 picture whose two sprites are at HL off the screen.
sprite_hide::
	xor	a,a
	ld	(hl),a
	ld	de,#4
	add	hl,de
	ld	(hl),a
	ret

; Take off what a box covers: its pixels begin at line B and column C. A sprite's
; Y and X in OAM are the lower and right edges of the line and column that it ends at.
sprites_clear_box::
	ld	hl,#shadow_oam
	ld	d,#SPRITES
1$:	ld	a,b
	cp	a,(hl)
	jr	nc,2$
	inc	l
	ld	a,c
	cp	a,(hl)
	dec	l
	jr	nc,2$
	ld	(hl),#0
2$:	ld	a,l
	add	a,#4
	ld	l,a
	dec	d
	jr	nz,1$
	ret

poses:					; tile, OAM attributes
	.db	0, 0x00			; DOWN
	.db	8, 0x00			; UP
	.db	16, 0x00		; LEFT
	.db	16, 0x20		; RIGHT: LEFT mirrored
