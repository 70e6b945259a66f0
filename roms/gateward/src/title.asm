; The title and the end.
	.module title
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; Show the title until START is pressed; where there is a save, let the player choose. Carry: continue.
; Called and left with the LCD off.
title_run::
	ld	a,#TITLE_BANK
	call	bank_set
	ld	hl,#title_tiles
	ld	de,#0x9000
	ld	bc,#128 * 16
	call	copy
	ld	de,#0x8000 + SPARE_TILE * 16	; the rest behind the letters
	ld	bc,#(TITLE_TILE_COUNT - 128) * 16
	call	copy
	xor	a,a
	call	window_palette
	ld	hl,#title_map
	ld	de,#MAP
	ld	c,#18
1$:	ld	b,#20
2$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	b
	jr	nz,2$
	ld	a,e
	add	a,#12
	ld	e,a
	jr	nc,3$
	inc	d
3$:	dec	c
	jr	nz,1$
	ldh	a,(hColor)
	or	a,a
	jr	z,5$
	ld	a,#1
	ldh	(VBK),a
	ld	hl,#MAP
	ld	bc,#0x0400
4$:	ld	a,#TITLE_PALETTE
	ld	(hl+),a
	dec	bc
	ld	a,b
	or	a,c
	jr	nz,4$
	ldh	(VBK),a
5$:	call	lcd_on
6$:	call	wait_frame
	call	read_joypad
	ldh	a,(h_keys_new)
	and	a,#KEY_START
	jr	z,6$
	call	save_check
	jp	nc,lcd_off_plain
	ld	hl,#text_continue
	call	text_show
	call	ask
	jr	nz,7$
	call	save_load
	call	7$
	scf
	ret
7$:	xor	a,a
	ld	(wTextBoxOpen),a
	ld	a,#SCREEN_LINES
	ldh	(hWY),a
lcd_off_plain:
	call	lcd_off
	or	a,a
	ret

; The game is won: a last picture, for good.
game_won::
	ld	a,#1
	ld	(wGameWon),a
	call	screen_clear
	ld	hl,#text_end
	ld	de,#wTileMap + 5 * COLUMNS
	call	print
	call	full_open
1$:	call	wait_frame
	jr	1$
