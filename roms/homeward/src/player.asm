; The player: taking a direction, one frame of a step, and the sprite.
	.module player
	.include "hardware.inc"

	.area _CODE

; Called once a frame in the world.
player_update::
	ld	a,(step_left)
	or	a,a
	jr	nz,step_frame
	ldh	a,(h_keys)
	and	a,#KEY_DPAD
	ret	z			; standing still: nothing to do
	ld	b,#DOWN
	add	a,a			; the key bits come out from the left
	jr	c,walk
	ld	b,#UP
	add	a,a
	jr	c,walk
	ld	b,#LEFT
	add	a,a
	jr	c,walk
	ld	b,#RIGHT

; Turn to direction B and, if nothing is in the way, begin a step.
walk:
	ld	a,b
	ld	(player_facing),a
	add	a,a
	ld	e,a
	ld	d,#0
	ld	hl,#directions
	add	hl,de
	ld	a,(hl+)
	ld	d,a			; D, E = change of column and row
	ld	e,(hl)
	ld	a,(player_x)
	add	a,d
	ld	b,a
	ld	a,(player_y)
	add	a,e
	ld	c,a
	call	cell_attribute
	cp	a,#SOLID
	jp	z,player_draw
	ld	a,b
	ld	(player_x),a
	ld	a,c
	ld	(player_y),a
	ld	a,d
	ld	(step_dx),a
	ld	a,e
	ld	(step_dy),a
	ld	a,#STEP_FRAMES
	ld	(step_left),a
	ld	hl,#step_foot
	inc	(hl)
	call	camera_follow

; One pixel of the step.
step_frame:
	ld	a,(step_dx)
	ld	hl,#player_px
	add	a,(hl)
	ld	(hl+),a
	ld	a,(step_dy)
	add	a,(hl)
	ld	(hl),a
	ld	a,(camera_dx)
	ld	b,a
	ldh	a,(h_scx)
	add	a,b
	ldh	(h_scx),a
	ld	a,(camera_dy)
	ld	b,a
	ldh	a,(h_scy)
	add	a,b
	ldh	(h_scy),a
	ld	hl,#step_left
	dec	(hl)
	push	af
	call	player_draw
	pop	af
	ret	nz
	jp	warp_check		; the step is done

; Where the camera goes in this step, and the row or column that comes into view.
camera_follow:
	call	camera_wanted
	ld	hl,#camera_x
	ld	a,b
	sub	a,(hl)
	ld	(camera_dx),a
	ld	(hl),b
	inc	hl
	ld	a,c
	sub	a,(hl)
	ld	(camera_dy),a
	ld	(hl),c
	or	a,a
	jr	nz,1$
	ld	a,(camera_dx)
	or	a,a
	ret	z			; the edge of the map: the camera stays
	bit	7,a
	jp	nz,strip_column		; to the left: column B
	ld	a,b
	add	a,#VIEW_COLUMNS - 1
	ld	b,a
	jp	strip_column
1$:	bit	7,a
	jp	nz,strip_row		; up: row C
	ld	a,c
	add	a,#VIEW_ROWS - 1
	ld	c,a
	jp	strip_row

; Put the two 8x16 sprites of the player into OAM's shadow.
player_draw::
	ld	a,(player_facing)
	add	a,a
	ld	e,a
	ld	d,#0
	ld	hl,#poses
	add	hl,de
	ld	a,(hl+)
	ld	d,a			; D = first tile of the pose
	ld	e,(hl)			; E = OAM attributes: 0x20 mirrors
	ld	a,(step_left)
	sub	a,#5			; the middle 8 frames of a step show the
	cp	a,#8			; walking pose
	jr	nc,1$
	ld	a,d
	add	a,#4
	ld	d,a
	ld	a,(player_facing)
	cp	a,#LEFT
	jr	nc,1$
	ld	a,(step_foot)		; seen from front or back the other foot is
	rrca				; the picture mirrored
	jr	nc,1$
	ld	e,#0x20
1$:	ldh	a,(h_scy)
	ld	b,a
	ld	a,(player_py)
	sub	a,b
	add	a,#16 - 4		; feet a little above the edge of the cell
	ld	b,a
	ldh	a,(h_scx)
	ld	c,a
	ld	a,(player_px)
	sub	a,c
	add	a,#8
	ld	c,a
	ld	hl,#shadow_oam
	bit	5,e
	jr	nz,2$
	call	3$			; left half, right half
	inc	d
	inc	d
	jr	3$
2$:	inc	d			; mirrored: right half, left half
	inc	d
	call	3$
	dec	d
	dec	d
3$:	ld	a,b			; one sprite at B, C, tile D, attributes E
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

directions:				; change of column, of row
	.db	0, 1			; DOWN
	.db	0, -1			; UP
	.db	-1, 0			; LEFT
	.db	1, 0			; RIGHT

poses:					; first tile, OAM attributes
	.db	0, 0x00			; DOWN
	.db	8, 0x00			; UP
	.db	16, 0x00		; LEFT
	.db	16, 0x20		; RIGHT: LEFT mirrored
