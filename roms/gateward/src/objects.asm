; Objects of a map: people, trainers, signs, things that lie about or block the way; and all sprites.
	.module objects
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; Copy the map's objects whose condition holds to wObjects. In ROM an object is as in RAM, with one byte more: the
; condition for its flag (0 none, 1 it is there until the event, 2 from the event on).
objects_load::
	xor	a,a
	ld	(wObjectCount),a
	ld	hl,#wMapObjects
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	de,#wObjects
1$:	ld	a,(hl)
	cp	a,#0xFF
	ret	z
	push	hl
	ld	a,#OBJECT_FLAG
	call	add_hl_a
	ld	a,(hl+)
	ld	b,a
	ld	a,(hl)
	or	a,a
	jr	z,3$
	dec	a
	ld	a,b
	jr	nz,2$
	call	event_test
	jr	z,3$
	jr	4$
2$:	call	event_test
	jr	z,4$
3$:	pop	hl
	push	hl
	ld	bc,#OBJECT_SIZE
	call	copy
	ld	hl,#wObjectCount
	inc	(hl)
4$:	pop	hl
	ld	a,#MAP_OBJECT_SIZE
	call	add_hl_a
	jr	1$

; Z: HL = the object in column B, row C. Keeps BC, DE.
object_at::
	ld	a,(wObjectCount)
	or	a,a
	jr	z,3$
	push	de
	ld	d,a
	ld	hl,#wObjects
1$:	ld	a,(hl+)
	cp	a,b
	jr	nz,2$
	ld	a,(hl)
	cp	a,c
	jr	nz,2$
	dec	hl
	pop	de
	ret
2$:	ld	a,#OBJECT_SIZE - 1
	call	add_hl_a
	dec	d
	jr	nz,1$
	pop	de
3$:	or	a,#1
	ret

; Z: no object is in column B, row C. Keeps BC, DE, HL.
object_blocks::
	push	hl
	call	object_at
	pop	hl
	jr	z,1$
	xor	a,a
	ret
1$:	or	a,#1
	ret

; A trainer who sees the player, and has not lost yet, fights. Carry: that happened.
sight_check::
	ld	a,(wObjectCount)
	or	a,a
	ret	z
	ld	d,a
	ld	hl,#wObjects
1$:	push	de
	push	hl
	call	sees
	pop	hl
	pop	de
	jr	c,2$
	ld	a,#OBJECT_SIZE
	call	add_hl_a
	dec	d
	jr	nz,1$
	or	a,a
	ret
2$:	call	object_script
	scf
	ret

; Carry: the object at HL sees the player.
sees:
	push	hl
	ld	de,#OBJECT_KIND
	add	hl,de
	ld	a,(hl-)
	and	a,#0x0F
	ld	e,a			; how far
	ld	d,(hl)			; where to
	inc	hl
	inc	hl
	inc	hl
	inc	hl
	ld	a,(hl)			; the event of the defeat
	pop	hl
	inc	e
	dec	e
	ret	z			; no carry: not a trainer
	call	event_test
	jr	nz,4$
	call	player_cell
	ld	a,(hl+)
	sub	a,b			; column: theirs - the player's
	ld	b,a
	ld	a,(hl)
	sub	a,c
	ld	c,a
	ld	a,d
	cp	a,#LEFT
	jr	nc,2$
	ld	a,b			; up or down: the same column
	or	a,a
	ret	nz
	ld	a,c
	bit	0,d
	jr	nz,3$			; UP: the trainer's row is greater
1$:	cpl
	inc	a
	jr	3$
2$:	ld	a,c
	or	a,a
	ret	nz
	ld	a,b
	bit	0,d
	jr	nz,1$			; RIGHT: the trainer's column is less
3$:	or	a,a
	ret	z
	bit	7,a
	ret	nz			; no carry after OR
	inc	e
	cp	a,e			; carry: near enough
	ret
4$:	or	a,a
	ret

; All sprites off the screen.
sprites_clear::
	ld	hl,#shadow_oam
	ld	b,#160
	xor	a,a
1$:	ld	(hl+),a
	dec	b
	jr	nz,1$
	ret

; Take off what a text box covers. A sprite's Y in OAM is the line below its last one.
sprites_hide_below::
	ld	hl,#shadow_oam
	ld	de,#4
	ld	b,#40
1$:	ld	a,(hl)
	cp	a,#BOX_LINE + 1
	jr	c,2$
	ld	(hl),#0
2$:	add	hl,de
	dec	b
	jr	nz,1$
	ret

; All sprites anew, where the camera is.
sprites_draw::
	call	player_draw
	ld	a,(wObjectCount)
	or	a,a
	ld	hl,#shadow_oam + 8
	jr	z,4$
	ld	b,a
	ld	de,#wObjects
1$:	push	bc
	push	de
	call	object_draw
	pop	de
	ld	a,e
	add	a,#OBJECT_SIZE
	ld	e,a
	jr	nc,2$
	inc	d
2$:	pop	bc
	dec	b
	jr	nz,1$
4$:	ld	a,l			; none behind the last
	cp	a,#160
	ret	nc
	ld	(hl),#0
	inc	hl
	inc	hl
	inc	hl
	inc	hl
	jr	4$

; Put the object at DE into OAM's shadow at HL, which moves on, if it is on the screen.
object_draw:
	ld	a,(de)
	inc	de
	swap	a
	ld	b,a
	ldh	a,(hSCX)
	cpl
	inc	a
	add	a,b			; pixels from the left
	cp	a,#160
	jr	c,1$
	cp	a,#241			; partly at the left
	ret	c
1$:	add	a,#8
	ld	c,a
	ld	a,(de)
	inc	de
	swap	a
	ld	b,a
	ldh	a,(hSCY)
	cpl
	inc	a
	add	a,b
	cp	a,#148
	jr	c,2$
	cp	a,#241
	ret	c
2$:	add	a,#16 - 4		; feet a little above the edge of the cell
	ld	b,a
	ld	a,(de)
	inc	de
	cp	a,#NO_TILE
	ret	z
	push	bc
	ld	b,a
	ld	a,(de)			; palette
	inc	de
	ld	c,a
	ld	a,(de)			; facing
	inc	de
	push	af
	ld	a,(de)			; kind
	ld	e,c
	ld	d,b
	bit	7,a
	jr	nz,3$
	pop	af
	pop	bc
	jr	sprite_put
3$:	pop	af
	pop	bc
	or	a,a			; DOWN
	jr	z,sprite_put
	inc	d
	inc	d
	inc	d
	inc	d
	dec	a			; UP
	jr	z,sprite_put
	inc	d
	inc	d
	inc	d
	inc	d
	dec	a			; LEFT
	jr	z,sprite_put
	set	5,e			; RIGHT: mirrored

; Put a 16x16 picture at OAM's Y = B, X = C: tiles D to D+3, attributes E, into the two sprites at HL, which moves on.
sprite_put:
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
2$:	ld	a,b
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

; The player's two sprites, the first in OAM's shadow.
player_draw::
	ld	a,(wPlayerDirection)
	add	a,a
	ld	hl,#poses
	call	add_hl_a
	ld	a,(wWalkBikeSurfState)
	cp	a,#SURFING
	jr	nz,1$
	ld	a,#8
	call	add_hl_a
1$:	ld	a,(hl+)
	ld	d,a
	ld	e,(hl)
	ld	a,(wWalkBikeSurfState)
	cp	a,#SURFING
	jr	z,2$
	ld	a,(wWalkCounter)	; the middle of a step shows the walking pose
	sub	a,#2
	cp	a,#5
	jr	nc,2$
	ld	a,#4
	add	a,d
	ld	d,a
	ld	a,(wPlayerDirection)
	cp	a,#LEFT
	jr	nc,2$
	ld	a,(wStepFoot)		; from front and back the other foot is the picture mirrored
	and	a,#1
	jr	z,2$
	ld	e,#0x20
2$:	ld	a,(wJumping)
	ld	hl,#heights
	call	add_hl_a
	ldh	a,(hSCY)
	add	a,(hl)
	ld	b,a
	ld	a,(wPixelY)
	sub	a,b
	add	a,#16 - 4
	ld	b,a
	ldh	a,(hSCX)
	ld	c,a
	ld	a,(wPixelX)
	sub	a,c
	add	a,#8
	ld	c,a
	ld	hl,#shadow_oam
	jp	sprite_put

poses:					; tile, OAM attributes
	.db	PLAYER_TILE, 0x00	; DOWN
	.db	PLAYER_TILE + 8, 0x00	; UP
	.db	PLAYER_TILE + 16, 0x00	; LEFT
	.db	PLAYER_TILE + 16, 0x20	; RIGHT: LEFT mirrored
	.db	BOAT_TILE, 0x00		; the same at sea
	.db	BOAT_TILE, 0x00
	.db	BOAT_TILE + 4, 0x00
	.db	BOAT_TILE + 4, 0x20

heights:				; pixels above the ground, by frames left of a jump
	.db	0, 2, 4, 6, 8, 9, 10, 11, 11, 11, 10, 9, 8, 6, 4, 2, 0
