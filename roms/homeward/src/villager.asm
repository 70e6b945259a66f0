; The villager, who wanders about her part of the village, stands in the way and can be
; talked to. Where she goes comes from the divider register, mixed over time.
	.module villager
	.include "hardware.inc"
	.include "data.inc"

WAIT_LEAST = 16				; frames between two walks
WAIT_MASK  = 0x3F

	.area _CODE

; Put her where she is when the player enters a map; one cell aside if the player stands
; there, who may have saved in her place.
villager_place::
	ld	bc,#(VILLAGER_X << 8) | VILLAGER_Y
	ld	a,(player_x)
	cp	a,b
	jr	nz,1$
	ld	a,(player_y)
	cp	a,c
	jr	nz,1$
	inc	b
1$:	ld	hl,#npc_x
	ld	a,b
	ld	(hl+),a
	ld	(hl),c
	ld	hl,#npc_px
	swap	a
	and	a,#0xF0
	ld	(hl+),a
	ld	a,c
	swap	a
	and	a,#0xF0
	ld	(hl),a
	xor	a,a			; DOWN
	ld	(npc_facing),a
	ld	(npc_left),a
	ld	a,#WAIT_LEAST
	ld	(npc_wait),a
	ret

; Z: she stands in column B, row C of the current map, or is on her way there.
villager_at::
	ld	a,(player_map)
	cp	a,#VILLAGER_MAP
	ret	nz
	ld	a,(npc_x)
	cp	a,b
	ret	nz
	ld	a,(npc_y)
	cp	a,c
	ret

; Called once a frame in the world.
villager_update::
	ld	a,(player_map)
	cp	a,#VILLAGER_MAP
	ret	nz
	ld	a,(npc_left)
	or	a,a
	jr	nz,npc_frame
	ld	hl,#npc_wait
	dec	(hl)
	jr	z,npc_decide
	ld	hl,#view_moved
	ld	a,(hl)
	or	a,a
	ret	z			; she stands where she stood
	ld	(hl),#0
	jr	villager_draw

; Turn somewhere and, if nothing is in the way, begin a step.
npc_decide:
	call	random
	ld	d,a
	rrca
	rrca
	and	a,#WAIT_MASK
	add	a,#WAIT_LEAST
	ld	(hl),a
	ld	a,(npc_x)
	ld	b,a
	ld	a,(npc_y)
	ld	c,a
	ld	a,d
	and	a,#0x03
	ld	(npc_facing),a
	call	ahead
	ld	a,b
	sub	a,#VILLAGER_LEFT
	cp	a,#VILLAGER_RIGHT - VILLAGER_LEFT + 1
	jr	nc,villager_draw
	ld	a,c
	sub	a,#VILLAGER_TOP
	cp	a,#VILLAGER_BOTTOM - VILLAGER_TOP + 1
	jr	nc,villager_draw
	ld	a,(player_x)		; the player's cell is taken
	cp	a,b
	jr	nz,1$
	ld	a,(player_y)
	cp	a,c
	jr	z,villager_draw
1$:	ld	hl,#npc_x
	ld	a,b
	ld	(hl+),a
	ld	a,c
	ld	(hl+),a
	ld	a,d
	ld	(npc_dx),a
	ld	a,e
	ld	(npc_dy),a
	ld	a,#STEP_FRAMES
	ld	(npc_left),a
	ld	hl,#npc_foot
	inc	(hl)

; One pixel of her step.
npc_frame:
	ld	a,(npc_dx)
	ld	hl,#npc_px
	add	a,(hl)
	ld	(hl+),a
	ld	a,(npc_dy)
	add	a,(hl)
	ld	(hl),a
	ld	hl,#npc_left
	dec	(hl)

; Put her two sprites into OAM's shadow, if she is near the view.
villager_draw::
	ld	a,(player_map)
	cp	a,#VILLAGER_MAP
	jr	nz,1$
	ld	hl,#camera_x		; two cells around the view: scrolling lags by a
	ld	a,(npc_x)		; cell and so does her step
	sub	a,(hl)
	add	a,#2
	cp	a,#VIEW_COLUMNS + 4
	jr	nc,1$
	inc	hl
	ld	a,(npc_y)
	sub	a,(hl)
	add	a,#2
	cp	a,#VIEW_ROWS + 4
	jr	nc,1$
	ld	a,(npc_left)
	ld	b,a
	ld	a,(npc_foot)
	ld	c,a
	ld	a,(npc_facing)
	call	pose
	ld	a,d
	add	a,#VILLAGER_TILE
	ld	d,a
	ldh	a,(h_scy)
	ld	b,a
	ld	a,(npc_py)
	sub	a,b
	add	a,#16 - 4
	ld	b,a
	ldh	a,(h_scx)
	ld	c,a
	ld	a,(npc_px)
	sub	a,c
	add	a,#8
	ld	c,a
	ld	hl,#OAM_VILLAGER
	jp	sprite_put
1$:	ld	hl,#OAM_VILLAGER
	jp	sprite_hide

; A = the next random number: 5 times the last one plus the divider. Changes B.
random:
	ldh	a,(DIV)
	ld	b,a
	ld	a,(rng)
	add	a,b
	ld	b,a
	add	a,a
	add	a,a
	add	a,b
	ld	(rng),a
	ret
