; The LCD on and off, colours, and tiles into video memory.
	.module screen
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; Switch the LCD off inside of VBlank, by waiting for LY. Used before interrupts are on.
lcd_wait_off::
	ldh	a,(LY)
	cp	a,#144
	jr	c,lcd_wait_off
	xor	a,a
	ldh	(LCDC),a
	ret

; Switch the LCD off right after the VBlank handler.
lcd_off::
	ldh	a,(LCDC)
	add	a,a
	ret	nc
	call	wait_frame
	xor	a,a
	ldh	(LCDC),a
	ret

lcd_on::
	ldh	a,(hWY)
	ldh	(WY),a
	ld	a,#7
	ldh	(WX),a
	ldh	a,(hSCX)
	ldh	(SCX),a
	ldh	a,(hSCY)
	ldh	(SCY),a
	ld	a,#LCDC_PLAY
	ldh	(LCDC),a
	ret

; Shades of a Game Boy, and the palettes of a Game Boy Color.
load_palettes::
	ld	a,#PALETTE
	ldh	(BGP),a
	ld	a,#SPRITE_PALETTE
	ldh	(OBP0),a
	ldh	(OBP1),a
	ldh	a,(hColor)
	or	a,a
	ret	z
	ld	a,#0x80			; from the first byte on, counting up
	ldh	(BCPS),a
	ldh	(OCPS),a
	ld	hl,#map_palettes
	ld	c,#<BCPD
	call	1$
	ld	hl,#sprite_palettes
	ld	c,#<OCPD
1$:	ld	b,#64
2$:	ld	a,(hl+)
	ldh	(c),a
	dec	b
	jr	nz,2$
	ret

; The letters; the LCD is off, as for all of these.
load_font::
	ld	a,#FONT_BANK
	call	bank_set
	ld	hl,#font_tiles
	ld	de,#0x8000 + FONT_TILE * 16
	ld	bc,#FONT_TILE_COUNT * 16
	jp	copy

load_sprites::
	call	lcd_off
	ld	a,#SPRITE_BANK
	call	bank_set
	ld	hl,#sprite_tiles
	ld	de,#0x8000
	ld	bc,#SPRITE_TILE_COUNT * 16
	jp	copy

; The map's tiles: B of them, whose addresses in the bank of tiles are listed at HL, 128 to 9000 and the rest behind the
; letters, where battles have their pictures.
load_map_tiles::
	ld	de,#0x9000
1$:	ld	a,d
	cp	a,#0x98
	jr	nz,3$
	ld	de,#0x8000 + SPARE_TILE * 16
3$:	push	bc
	ldh	a,(hBank)
	push	af
	ld	a,(hl+)
	ld	c,a
	ld	a,(hl+)
	ld	b,a			; the tile
	push	hl
	ld	h,b
	ld	l,c
	ld	a,#POOL_BANK
	call	bank_set
	ld	b,#16
2$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	b
	jr	nz,2$
	pop	hl
	pop	af
	call	bank_set
	pop	bc
	dec	b
	jr	nz,1$
	ret

; All palettes of the window are A (a Game Boy Color's).
window_palette::
	ld	c,a
	ldh	a,(hColor)
	or	a,a
	ret	z
	ld	a,#1
	ldh	(VBK),a
	ld	hl,#WINDOW_MAP
	ld	de,#18 * 32
1$:	ld	a,c
	ld	(hl+),a
	dec	de
	ld	a,d
	or	a,e
	jr	nz,1$
	ldh	(VBK),a
	ret

; Palette A for the 5x5 tiles at HL in the window.
picture_palette::
	ld	c,a
	ldh	a,(hColor)
	or	a,a
	ret	z
	ld	a,#1
	ldh	(VBK),a
	ld	d,#5
1$:	ld	b,#5
	ld	a,c
2$:	ld	(hl+),a
	dec	b
	jr	nz,2$
	ld	a,#27
	call	add_hl_a
	dec	d
	jr	nz,1$
	xor	a,a
	ldh	(VBK),a
	ret

; The picture of species A to the 25 tiles at DE; B = 1 mirrors it.
load_picture::
	push	bc
	push	de
	ld	l,a			; * 400 = 16 * 25
	ld	h,#0
	ld	a,#25
	call	multiply
	add	hl,hl
	add	hl,hl
	add	hl,hl
	add	hl,hl
	ld	de,#picture_tiles
	add	hl,de
	pop	de
	pop	bc
	ldh	a,(hBank)
	push	af
	ld	a,#PICTURE_BANK
	call	bank_set
	ld	a,b
	ld	bc,#400
	or	a,a
	jr	nz,1$
	call	copy
	jr	3$
1$:	push	bc
	ld	a,(hl+)
	ld	b,#8			; bit by bit from the other end
2$:	rra
	rl	c
	dec	b
	jr	nz,2$
	ld	a,c
	ld	(de),a
	inc	de
	pop	bc
	dec	bc
	ld	a,b
	or	a,c
	jr	nz,1$
3$:	pop	af
	jp	bank_set
