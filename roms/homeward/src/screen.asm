; LCD on and off, fades, and tiles into video memory.
	.module screen
	.include "hardware.inc"
	.include "data.inc"

	.area _CODE

; Switch the LCD off inside of VBlank, by waiting for LY. Used once, before
; interrupts are on.
lcd_wait_off::
1$:	ldh	a,(LY)
	cp	a,#144
	jr	c,1$
	xor	a,a
	ldh	(LCDC),a
	ret

; Switch the LCD off right after the VBlank handler, if it is on.
lcd_off::
	ldh	a,(LCDC)
	add	a,a
	ret	nc
	call	wait_frame
	xor	a,a
	ldh	(LCDC),a
	ret

; Switch the LCD on with the scroll and palette that the game wants.
lcd_on::
	ldh	a,(h_wx)
	ldh	(WX),a
	ldh	a,(h_wy)
	ldh	(WY),a
	ldh	a,(h_scx)
	ldh	(SCX),a
	ldh	a,(h_scy)
	ldh	(SCY),a
	ld	a,#LCDC_PLAY
	ldh	(LCDC),a
	ret

FADE_FRAMES = 4

; From the full picture to white, and back.
fade_out::
	ld	hl,#fade_steps+1
1$:	ld	a,(hl+)
	ldh	(h_palette),a
	ld	b,#FADE_FRAMES
	push	af
	call	wait_frames
	pop	af
	or	a,a
	jr	nz,1$
	ret

fade_in::
	ld	hl,#fade_steps+2
	ld	c,#3
1$:	ld	a,(hl-)
	ldh	(h_palette),a
	ld	b,#FADE_FRAMES
	call	wait_frames
	dec	c
	jr	nz,1$
	ret

fade_steps:
	.db	0xE4, 0x90, 0x40, 0x00

; Copy B tiles (1..255, 0 means 256) from HL in bank C to background tile 0 on:
; 128 go to 9000-97FF, the rest to 8800.
load_background_tiles::
	ld	a,c
	ld	(MBC_ROM_BANK),a
	ld	de,#0x9000
1$:	call	copy_tile
	ld	a,d
	cp	a,#0x98
	jr	nz,2$
	ld	d,#0x88
2$:	dec	b
	jr	nz,1$
	ld	a,#BANK_MAPS
	ld	(MBC_ROM_BANK),a
	ret

; Copy the letters to the last background tiles.
load_font::
	ld	hl,#font_tiles
	ld	de,#0x8000 + FONT_TILE * 16
	ld	b,#FONT_TILE_COUNT
	jr	load_tiles

; Copy all sprite tiles.
load_sprite_tiles::
	ld	hl,#sprite_tiles
	ld	de,#0x8000
	ld	b,#SPRITE_TILE_COUNT
load_tiles:
	ld	a,#BANK_TILES
	ld	(MBC_ROM_BANK),a
1$:	call	copy_tile
	dec	b
	jr	nz,1$
	ld	a,#BANK_MAPS
	ld	(MBC_ROM_BANK),a
	ret

; Copy the 16 bytes of one tile from HL to DE.
copy_tile:
	ld	c,#16
1$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	c
	jr	nz,1$
	ret
