; Doors and other ways from map to map.
	.module warp
	.include "hardware.inc"

ARRIVAL_FRAMES = 16			; no buttons are taken after a warp

	.area _CODE

; If the player has stepped onto a warp, fade to where it leads.
warp_check::
	ld	a,(player_x)
	ld	b,a
	ld	a,(player_y)
	ld	c,a
	call	cell_attribute
	cp	a,#WARP
	ret	nz
	ld	hl,#map_warps
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
1$:	ld	a,(hl+)			; column, row, map, column, row, facing
	cp	a,#0xFF
	ret	z			; end of the list
	ld	d,a
	ld	a,(hl+)
	cp	a,c
	jr	nz,2$
	ld	a,d
	cp	a,b
	jr	z,warp_take
2$:	ld	de,#4
	add	hl,de
	jr	1$

; HL = the second half of the warp.
warp_take:
	ld	de,#player_map		; map, column, row, facing lie in this order
	ld	b,#4
1$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	b
	jr	nz,1$
	call	fade_out
	call	map_enter
	call	quest_arrive
	ld	b,#ARRIVAL_FRAMES	; a breath on the doorstep
	jp	wait_frames
