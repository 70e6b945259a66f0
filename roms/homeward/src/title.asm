; The title screen.
	.module title
	.include "hardware.inc"
	.include "data.inc"

	.area _CODE

; Show the title until START is pressed. With a save, let the player choose: A = 0 to
; continue, 1 for a new game. Called and left with the LCD off or white.
title_run::
	xor	a,a
	ldh	(BGP),a
	ldh	(OBP0),a
	ld	hl,#title_tiles
	ld	b,#<TITLE_TILE_COUNT
	ld	c,#BANK_TILES
	call	load_background_tiles
	call	load_sprite_tiles
	call	draw_title
	call	lcd_on
	call	fade_in
1$:	call	wait_frame
	call	read_joypad
	ldh	a,(h_keys_new)
	and	a,#KEY_START
	jr	z,1$
	call	fade_out
	call	lcd_off			; the title has the place of the letters
	call	load_font
	ld	a,(save_found)
	or	a,a
	ld	a,#1
	ret	z
	call	clear_background
	call	lcd_on
	call	fade_in
	call	title_choose
	push	af
	call	fade_out
	call	lcd_off
	ld	a,#SCREEN_LINES
	ldh	(h_wy),a
	pop	af
	ret

; Fill the background map with blanks.
clear_background:
	ld	hl,#0x9800
1$:	ld	a,#TILE_SPACE
	ld	(hl+),a
	ld	a,h
	cp	a,#0x9C
	jr	nz,1$
	ret

; Copy the 20x18 tile numbers to the background map.
draw_title:
	ld	a,#BANK_TILES
	ld	(MBC_ROM_BANK),a
	ld	hl,#title_map
	ld	de,#0x9800
	ld	c,#18
1$:	ld	b,#20
2$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	b
	jr	nz,2$
	ld	a,e			; next line of the map, 32 wide
	add	a,#12
	ld	e,a
	jr	nc,3$
	inc	d
3$:	dec	c
	jr	nz,1$
	ld	a,#BANK_MAPS
	ld	(MBC_ROM_BANK),a
	ret
