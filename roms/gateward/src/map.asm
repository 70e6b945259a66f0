; Maps: entering one, drawing it, the camera. A map has at most 16x16 cells, so that all of it fits into the
; background map: walking only changes the scroll registers.
	.module map
	.include "game.inc"
	.include "data.inc"

HEADER_SIZE = 23
VIEW = 64				; the player is this many pixels from the left and from the top

	.area _CODE

; Show map wCurMap with the player at wXCoord, wYCoord.
map_enter::
	call	lcd_off
	ld	a,(wCurMap)
	ld	l,a
	ld	h,#0
	ld	d,h
	ld	e,a
	add	hl,hl
	add	hl,de
	ld	de,#map_table
	add	hl,de
	ld	a,(hl+)
	ld	(wMapBank),a
	call	bank_set
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	de,#wMapHeader
	ld	bc,#HEADER_SIZE
	call	copy
	call	map_expand
	call	map_draw
	call	player_stand
	call	camera_set
	call	objects_load
	call	sprites_draw
	jp	lcd_on

; Tiles again, after something else was where they are.
map_tiles_load::
	ld	hl,#wMapTiles
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	a,(wMapTileCount)
	ld	b,a
	jp	load_map_tiles

; Cells and their attributes to RAM. What is outside of the map is solid.
map_expand:
	ld	hl,#wMapCells
	ld	b,#0			; 256
1$:	ld	(hl),#0
	inc	h
	ld	(hl),#SOLID
	dec	h
	inc	l
	dec	b
	jr	nz,1$
	ld	hl,#wMapCellsAt
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	de,#wMapCells
	ld	a,(wCurMapHeight)
	ld	c,a
2$:	ld	a,(wCurMapWidth)
	ld	b,a
	push	de
3$:	ld	a,(hl+)
	ld	(de),a
	push	hl
	ld	l,a
	ld	a,(wMapAttributes)
	add	a,l
	ld	l,a
	ld	a,(wMapAttributes + 1)
	adc	a,#0
	ld	h,a
	ld	a,(hl)
	inc	d
	ld	(de),a
	dec	d
	inc	de
	pop	hl
	dec	b
	jr	nz,3$
	pop	de
	ld	a,e
	add	a,#16
	ld	e,a
	dec	c
	jr	nz,2$
	jp	map_tiles_load

; All cells to the background map, four tiles each; on a Game Boy Color their palettes, too.
map_draw:
	ld	de,#wMapCells
	ld	a,(wCurMapHeight)
	ldh	(hCount),a
	ld	bc,#MAP
1$:	push	de
	push	bc
	ld	a,(wCurMapWidth)
2$:	push	af
	call	cell_draw
	inc	de
	inc	bc
	inc	bc
	pop	af
	dec	a
	jr	nz,2$
	pop	bc
	ld	a,c			; two rows of tiles further
	add	a,#64
	ld	c,a
	jr	nc,3$
	inc	b
3$:	pop	de
	ld	a,e
	add	a,#16
	ld	e,a
	ldh	a,(hCount)
	dec	a
	ldh	(hCount),a
	jr	nz,1$
	ret

; The metatile of the cell at DE to BC in the background map. Keeps BC, DE.
cell_draw:
	push	de
	push	bc
	ld	a,(de)
	ld	e,a
	ld	l,a
	ld	h,#0
	add	hl,hl
	add	hl,hl
	ld	a,(wMapQuads)
	add	a,l
	ld	l,a
	ld	a,(wMapQuads + 1)
	adc	a,h
	ld	h,a
	ld	a,(hl+)
	ld	(bc),a
	inc	bc
	ld	a,(hl+)
	ld	(bc),a
	push	bc
	ld	a,c
	add	a,#31
	ld	c,a
	ld	a,(hl+)
	ld	(bc),a
	inc	bc
	ld	a,(hl)
	ld	(bc),a
	pop	bc
	ldh	a,(hColor)
	or	a,a
	jr	z,1$
	ld	a,#1
	ldh	(VBK),a
	ld	a,(wMapPalettes)
	add	a,e
	ld	l,a
	ld	a,(wMapPalettes + 1)
	adc	a,#0
	ld	h,a
	ld	a,(hl)
	ld	(bc),a
	dec	bc
	ld	(bc),a
	ld	h,b
	ld	l,c
	ld	de,#32
	add	hl,de
	ld	(hl+),a
	ld	(hl),a
	xor	a,a
	ldh	(VBK),a
1$:	pop	bc
	pop	de
	ret

; Put the player's pixels where the cell is.
player_stand:
	ld	a,(wXCoord)
	swap	a
	ld	(wPixelX),a
	ld	a,(wYCoord)
	swap	a
	ld	(wPixelY),a
	xor	a,a
	ld	(wWalkCounter),a
	ld	(wJumping),a
	jp	surf_set

; Scroll so that the player is in the middle, but never past the edge of the map.
camera_set::
	ld	a,(wCurMapWidth)
	sub	a,#10
	swap	a
	ld	b,a
	ld	a,(wPixelX)
	call	1$
	ldh	(hSCX),a
	ld	a,(wCurMapHeight)
	sub	a,#9
	swap	a
	ld	b,a
	ld	a,(wPixelY)
	call	1$
	ldh	(hSCY),a
	ret
1$:	sub	a,#VIEW
	jr	nc,2$
	xor	a,a
2$:	cp	a,b
	ret	c
	ld	a,b
	ret

; HL = the attribute of the cell in column B, row C.
kind_at::
	ld	a,c
	swap	a
	or	a,b
	ld	l,a
	ld	h,#>wMapKinds
	ret

; Run the script that belongs to entering this map, if it has one.
map_entry_script::
	ld	hl,#wMapEntry
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	or	a,h
	ret	z
	jp	script_run

; If the player has stepped onto a warp, go where it leads, or say what is needed. Carry: done.
warp_check::
	call	player_cell
	call	kind_at
	ld	a,(hl)
	cp	a,#WARP
	jr	nz,3$
	ld	hl,#wMapWarps
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
1$:	ld	a,(hl)			; column, row, map, column, row, item, text
	cp	a,#0xFF
	jr	z,3$
	cp	a,b
	jr	nz,2$
	inc	hl
	ld	a,(hl-)
	cp	a,c
	jr	z,warp_take
2$:	ld	a,#8
	call	add_hl_a
	jr	1$
3$:	or	a,a			; no carry
	ret

warp_take:
	inc	hl
	inc	hl
	push	hl
	ld	a,#3
	call	add_hl_a
	ld	a,(hl+)			; what one has to carry
	cp	a,#0xFF
	jr	z,1$
	push	hl
	call	bag_find
	pop	hl
	jr	nc,1$
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	call	text_say
	call	box_close
	pop	hl
	call	player_back
	scf
	ret
1$:	pop	hl
	ld	a,(hl+)
	ld	(wCurMap),a
	ld	a,(hl+)
	ld	(wXCoord),a
	ld	a,(hl)
	ld	(wYCoord),a
	call	map_enter
	call	map_entry_script
	scf
	ret

; If there is a script for this cell, run it. Carry: done.
trigger_check::
	call	player_cell
	ld	hl,#wMapTriggers
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
1$:	ld	a,(hl+)
	cp	a,#0xFF
	jr	z,4$
	cp	a,b
	ld	a,(hl+)
	jr	nz,2$
	cp	a,c
	jr	z,3$
2$:	inc	hl
	inc	hl
	jr	1$
3$:	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	call	script_run
	scf
	ret
4$:	or	a,a
	ret
