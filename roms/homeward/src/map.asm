; Maps: entering one, looking up cells, and drawing rows and columns of metatiles.
; Bank 2, the maps, is mapped at all times but while tiles are copied.
	.module map
	.include "hardware.inc"
	.include "data.inc"

	.area _CODE

; Show map player_map with the player at player_x, player_y. The screen is white
; before; the picture fades in.
map_enter::
	call	lcd_off
	call	map_load_header
	ld	hl,#map_tiles
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	a,(map_tile_count)
	ld	b,a
	ld	c,#BANK_TILES
	call	load_background_tiles
	call	camera_place
	call	map_draw
	call	villager_place
	call	sprites_draw
	call	lcd_on
	jp	fade_in

; Copy the header of map player_map to RAM.
map_load_header:
	ld	a,#BANK_MAPS
	ld	(MBC_ROM_BANK),a
	ld	a,(player_map)
	add	a,a
	ld	e,a
	ld	d,#0
	ld	hl,#map_table
	add	hl,de
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	de,#map_header
	ld	b,#MAP_HEADER_SIZE
1$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	b
	jr	nz,1$
	ret

; Set the camera and all pixel places from player_x and player_y.
camera_place:
	call	camera_wanted
	ld	a,b
	ld	(camera_x),a
	swap	a			; * 16, modulo 256
	and	a,#0xF0
	ldh	(h_scx),a
	ld	a,c
	ld	(camera_y),a
	swap	a
	and	a,#0xF0
	ldh	(h_scy),a
	ld	a,(player_x)
	swap	a
	and	a,#0xF0
	ld	(player_px),a
	ld	a,(player_y)
	swap	a
	and	a,#0xF0
	ld	(player_py),a
	ret

; B, C = the metatile that belongs in the top left corner: the player in the
; middle, but never past the edge of the map.
camera_wanted::
	ld	a,(map_width)
	sub	a,#VIEW_COLUMNS
	ld	d,a
	ld	a,(player_x)
	sub	a,#VIEW_X
	call	clamp
	ld	b,a
	ld	a,(map_height)
	sub	a,#VIEW_ROWS
	ld	d,a
	ld	a,(player_y)
	sub	a,#VIEW_Y
	call	clamp
	ld	c,a
	ret

; A = A limited to 0..D; carry says that A is below 0.
clamp:
	jr	nc,1$
	xor	a,a
1$:	cp	a,d
	ret	c
	ld	a,d
	ret

; HL = address of the cell in column B, row C. Changes A only.
cell_address::
	ld	a,c			; row * 64: bits 7-2 to the high byte
	rrca
	rrca
	ld	h,a
	and	a,#0xC0
	or	a,b
	ld	l,a
	ld	a,h
	and	a,#0x3F
	ld	h,a
	ld	a,(map_cells)
	add	a,l
	ld	l,a
	ld	a,(map_cells+1)
	adc	a,h
	ld	h,a
	ret

; A = attribute of the cell in column B, row C. Changes HL.
cell_attribute::
	call	cell_address
	ld	a,(map_attributes)
	add	a,(hl)
	ld	l,a
	ld	a,(map_attributes+1)
	adc	a,#0
	ld	h,a
	ld	a,(hl)
	ret

; Draw the whole view; the LCD is off.
map_draw:
	ld	a,(camera_y)
	ld	c,a
	ld	d,#VIEW_ROWS
1$:	push	bc
	push	de
	call	strip_row
	call	strip_flush
	pop	de
	pop	bc
	inc	c
	dec	d
	jr	nz,1$
	ret

; Make ready row C of the map, from the camera's column on.
strip_row::
	ld	a,(camera_x)
	ld	b,a
	ld	a,#STRIP_ROW
	ld	d,#1
	ld	e,#VIEW_COLUMNS
	jr	strip_build

; Make ready column B of the map, from the camera's row on.
strip_column::
	ld	a,(camera_y)
	ld	c,a
	ld	a,#STRIP_COLUMN
	ld	d,#64
	ld	e,#VIEW_ROWS

; Look up E metatiles from column B, row C on, D bytes apart, for strip_flush.
; A = kind of strip. The handler takes it at the next VBlank.
strip_build:
	push	af
	ld	a,d
	ld	(strip_step),a
	ld	a,e
	ldh	(h_strip_count),a
	call	cell_address
	call	strip_target
	ldh	a,(h_strip_count)
	ld	b,a
	ld	de,#strip_tiles
1$:	push	hl
	ld	l,(hl)			; metatile number * 4
	ld	h,#0
	add	hl,hl
	add	hl,hl
	ld	a,(map_metatiles)
	add	a,l
	ld	l,a
	ld	a,(map_metatiles+1)
	adc	a,h
	ld	h,a
	ld	c,#4
2$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	c
	jr	nz,2$
	pop	hl
	ld	a,(strip_step)
	add	a,l
	ld	l,a
	jr	nc,3$
	inc	h
3$:	dec	b
	jr	nz,1$
	pop	af
	ldh	(h_strip),a
	ret

; h_strip_to = 9800 + (C modulo 16) * 64 + (B modulo 16) * 2, where the metatile
; in column B, row C has its place in the background map.
strip_target:
	ld	a,c
	and	a,#0x0F
	ld	d,#0
	rrca
	rrca				; bits 1-0 are bits 7-6 now
	ld	e,a
	and	a,#0x03
	or	a,#0x98
	ldh	(h_strip_to+1),a
	ld	a,e
	and	a,#0xC0
	ld	e,a
	ld	a,b
	and	a,#0x0F
	add	a,a
	or	a,e
	ldh	(h_strip_to),a
	ret

; Write what waits to video memory. In VBlank or with the LCD off.
strip_flush::
	ldh	a,(h_strip)
	cp	a,#STRIP_BOX
	jp	z,box_flush
	ldh	a,(h_strip_to)
	ld	l,a
	ldh	a,(h_strip_to+1)
	ld	h,a
	ld	de,#strip_tiles
	ldh	a,(h_strip_count)
	ldh	(h_strip_left),a
1$:	ld	a,(de)			; top two tiles
	inc	de
	ld	(hl+),a
	ld	a,(de)
	inc	de
	ld	(hl),a
	ld	bc,#31
	add	hl,bc
	ld	a,(de)			; bottom two tiles
	inc	de
	ld	(hl+),a
	ld	a,(de)
	inc	de
	ld	(hl),a
	ldh	a,(h_strip)
	cp	a,#STRIP_ROW
	jr	nz,2$
	ld	bc,#-33			; back to the top left, then right by 2,
	add	hl,bc
	ld	a,l			; from column 31 to column 0
	and	a,#0xE0
	ld	c,a
	ld	a,l
	add	a,#2
	and	a,#0x1F
	or	a,c
	ld	l,a
	jr	3$
2$:	add	hl,bc			; down by 2 rows, from row 31 to row 0
	ld	a,h
	and	a,#0x03
	or	a,#0x98
	ld	h,a
3$:	ldh	a,(h_strip_left)
	dec	a
	ldh	(h_strip_left),a
	jr	nz,1$
	xor	a,a			; STRIP_NONE
	ldh	(h_strip),a
	ret
