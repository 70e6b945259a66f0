; The player: taking a direction, one frame of a step or a jump, and the sprite.
	.module player
	.include "hardware.inc"
	.include "data.inc"

	.area _CODE

; Called once a frame in the world.
player_update::
	ld	a,(step_left)
	or	a,a
	jp	nz,step_frame
	ldh	a,(h_keys)
	or	a,a
	ret	z			; standing still: nothing to do
	ldh	a,(h_keys_new)
	and	a,#KEY_A | KEY_START
	jp	nz,player_act
	ldh	a,(h_keys)
	and	a,#KEY_DPAD
	ret	z
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
	call	player_ahead
	call	cell_attribute
	cp	a,#SOLID
	jp	z,player_draw
	sub	a,#LEDGE
	jr	nc,1$
	call	villager_at
	jr	nz,walk_begin
	jp	player_draw
1$:	ld	hl,#player_facing	; a ledge can be jumped in its direction
	cp	a,(hl)
	jp	nz,player_draw
	push	bc
	call	add_direction
	call	cell_attribute		; the cell where the jump ends
	pop	bc
	or	a,a			; WALK
	jp	nz,player_draw
	ld	a,#STEP_FRAMES
	ld	(jump_left),a
walk_begin:
	call	step_begin
	jr	step_frame

; Begin a step in direction D, E to column B, row C. A jump is two steps of 8
; frames at twice the speed.
step_begin:
	ld	a,b
	ld	(player_x),a
	ld	a,c
	ld	(player_y),a
	ld	a,#STEP_FRAMES
	ld	(step_left),a
	ld	hl,#step_foot
	inc	(hl)
	push	de
	call	camera_follow
	pop	de
	ld	a,(jump_left)
	or	a,a
	jr	z,1$
	sla	d
	sla	e
	ld	hl,#camera_dx
	sla	(hl)
	inc	hl
	sla	(hl)
	ld	hl,#step_left
	srl	(hl)
1$:	ld	a,d
	ld	(step_dx),a
	ld	a,e
	ld	(step_dy),a
	ret

; One frame of the step.
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
	ld	c,a
	ldh	a,(h_scy)
	add	a,c
	ldh	(h_scy),a
	ld	a,b
	or	a,c
	ld	(view_moved),a
	ld	hl,#jump_left
	ld	a,(hl)
	or	a,a
	jr	z,1$
	dec	(hl)
1$:	ld	hl,#step_left
	dec	(hl)
	push	af
	call	player_draw
	pop	af
	ret	nz
	ld	a,(jump_left)
	or	a,a
	jp	z,warp_check		; the step is done
	call	player_ahead		; half of the jump is done: on, off the ledge
	jr	step_begin

; B, C = the cell in front of the player, D, E = the direction to it.
player_ahead::
	ld	a,(player_x)
	ld	b,a
	ld	a,(player_y)
	ld	c,a
	ld	a,(player_facing)

; The cell next to B, C in direction A, and the direction's D, E.
ahead::
	add	a,a
	ld	e,a
	ld	d,#0
	ld	hl,#directions
	add	hl,de
	ld	a,(hl+)
	ld	d,a			; D, E = change of column and row
	ld	e,(hl)

; B, C += D, E.
add_direction:
	ld	a,b
	add	a,d
	ld	b,a
	ld	a,c
	add	a,e
	ld	c,a
	ret

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

; Put the player's two sprites into OAM's shadow.
player_draw::
	ld	a,(step_left)
	ld	b,a
	ld	a,(step_foot)
	ld	c,a
	ld	a,(player_facing)
	call	pose
	push	de
	ld	a,(jump_left)
	ld	e,a
	ld	d,#0
	ld	hl,#jump_heights
	add	hl,de
	ldh	a,(h_scy)
	add	a,(hl)
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
	pop	de
	ld	hl,#OAM_PLAYER
	jp	sprite_put

directions:				; change of column, of row
	.db	0, 1			; DOWN
	.db	0, -1			; UP
	.db	-1, 0			; LEFT
	.db	1, 0			; RIGHT

jump_heights:				; pixels above the ground, by frames left
	.db	0, 2, 4, 6, 8, 9, 10, 11, 11, 11, 10, 9, 8, 6, 4, 2
