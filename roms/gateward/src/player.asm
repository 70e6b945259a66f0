; The player: what the buttons do in the world, one frame of a step, and what a step leads to.
	.module player
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; Called once a frame in the world.
player_update::
	ld	a,(wWalkCounter)
	or	a,a
	jp	nz,step_frame
	ldh	a,(h_keys)
	or	a,a
	ret	z			; standing still: nothing to do
	ldh	a,(h_keys_new)
	bit	0,a			; KEY_A
	jp	nz,interact
	bit	3,a			; KEY_START
	jp	nz,start_menu
	ldh	a,(h_keys)
	ld	b,#DOWN
	add	a,a			; the keys come out from the left
	jr	c,walk
	ld	b,#UP
	add	a,a
	jr	c,walk
	ld	b,#LEFT
	add	a,a
	jr	c,walk
	ld	b,#RIGHT
	add	a,a
	ret	nc

; Turn to direction B and, if nothing is in the way, begin a step.
walk:
	ld	a,b
	ld	(wPlayerDirection),a
	call	cell_ahead
	call	is_free
	jp	nz,player_draw
	ld	a,(wXCoord)
	ld	(wPreviousX),a
	ld	a,(wYCoord)
	ld	(wPreviousY),a

; Begin a step in direction D, E to column B, row C.
step_begin:
	ld	a,b
	ld	(wXCoord),a
	ld	a,c
	ld	(wYCoord),a
	ld	a,d
	add	a,a
	ld	(wStepX),a
	ld	a,e
	add	a,a
	ld	(wStepY),a
	ld	a,#STEP_FRAMES
	ld	(wWalkCounter),a
	ld	hl,#wStepFoot
	inc	(hl)

; One frame of the step.
step_frame:
	ld	a,(wStepX)
	ld	hl,#wPixelX
	add	a,(hl)
	ld	(hl+),a
	ld	a,(wStepY)
	add	a,(hl)
	ld	(hl),a
	call	camera_set
	ld	hl,#wJumping
	ld	a,(hl)
	or	a,a
	jr	z,1$
	dec	(hl)
1$:	ld	hl,#wWalkCounter
	dec	(hl)
	push	af
	call	sprites_draw
	pop	af
	ret	nz
	ld	a,(wJumping)
	or	a,a
	jr	z,step_done
	call	cell_ahead		; half of the jump is done: on, off the ledge
	jr	step_begin

; The player stands in a new cell: all that may follow from it, one thing at most.
step_done:
	ld	hl,#wStepCount + 1
	inc	(hl)
	jr	nz,1$
	dec	hl
	inc	(hl)
1$:	call	surf_set
	call	warp_check
	ret	c
	call	trigger_check
	ret	c
	call	sight_check
	ret	c
	jp	wild_check

; Z: the player can go to column B, row C. A ledge begins a jump. Keeps BC, DE.
is_free:
	ld	a,b			; the edge of the largest map
	or	a,c
	and	a,#0xF0
	ret	nz
	call	kind_at
	ld	a,(hl)
	cp	a,#SOLID
	jr	z,no
	cp	a,#WATER
	jr	z,1$
	sub	a,#LEDGE
	jr	nc,2$
	jp	object_blocks
1$:	push	bc
	ld	a,#ITEM_BOAT
	call	bag_find
	pop	bc
	jr	c,no
	jp	object_blocks
2$:	ld	hl,#wPlayerDirection	; a ledge can be jumped in its direction
	cp	a,(hl)
	ret	nz
	push	bc
	call	add_direction
	call	kind_at
	ld	a,(hl)
	call	object_blocks
	jr	nz,3$
	ld	a,(hl)			; WALK or GRASS below
	or	a,a
	jr	z,3$
	cp	a,#GRASS
3$:	pop	bc
	ret	nz
	ld	a,#STEP_FRAMES * 2
	ld	(wJumping),a
	xor	a,a
	ret
no:	or	a,#1
	ret

; B, C = the cell in front of the player, D, E = the direction to it.
cell_ahead::
	call	player_cell
	ld	a,(wPlayerDirection)
	add	a,a
	ld	hl,#directions
	call	add_hl_a
	ld	a,(hl+)
	ld	d,a
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

; B, C = the player's column and row.
player_cell::
	ld	a,(wXCoord)
	ld	b,a
	ld	a,(wYCoord)
	ld	c,a
	ret

; Back to where the last step came from.
player_back::
	ld	a,(wPreviousX)
	ld	(wXCoord),a
	swap	a
	ld	(wPixelX),a
	ld	a,(wPreviousY)
	ld	(wYCoord),a
	swap	a
	ld	(wPixelY),a
	call	camera_set
	call	surf_set
	jp	sprites_draw

; wWalkBikeSurfState by the cell that the player is in.
surf_set::
	call	player_cell
	call	kind_at
	ld	a,(hl)
	sub	a,#WATER
	ld	a,#SURFING
	jr	z,1$
	xor	a,a
1$:	ld	(wWalkBikeSurfState),a
	ret

; A: talk to, read or take what is ahead.
interact:
	call	cell_ahead
	call	object_at
	ret	nz
	ld	de,#OBJECT_KIND		; a person turns to the player
	push	hl
	add	hl,de
	bit	7,(hl)
	jr	z,1$
	dec	hl
	ld	a,(wPlayerDirection)
	xor	a,#1
	ld	(hl),a
1$:	pop	hl
object_script::
	push	hl
	call	sprites_draw
	pop	hl
	ld	a,#OBJECT_SCRIPT
	call	add_hl_a
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	jp	script_run

; Chance of a wild fighter in grass, on a cave's floor and at sea, where the map has some.
wild_check:
	call	player_cell
	call	kind_at
	ld	a,(hl)
	cp	a,#GRASS
	jr	z,1$
	cp	a,#WATER
	ret	nz
1$:	ld	hl,#wRepelRemainingSteps
	ld	a,(hl)
	or	a,a
	jr	z,2$
	dec	(hl)
	ret
2$:	ld	hl,#wMapWild
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	or	a,h
	ret	z
	ld	a,(wPartyCount)
	or	a,a
	ret	z
	call	random
	cp	a,(hl)			; the map's rate, of 256
	ret	nc
	inc	hl
	ld	a,(hl+)			; how many kinds
	call	random_below
	add	a,a
	call	add_hl_a
	ld	a,(hl+)
	ld	b,(hl)
	jp	battle_wild

directions:				; change of column, of row
	.db	0, 1			; DOWN
	.db	0, -1			; UP
	.db	-1, 0			; LEFT
	.db	1, 0			; RIGHT
