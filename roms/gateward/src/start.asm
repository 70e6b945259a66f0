; Interrupt vectors, entry point, start-up and the main loop.
	.module start
	.include "game.inc"
	.include "data.inc"

	.area _HEADER (ABS)
	.org 0x0040			; VBlank, the only interrupt in use
	jp	vblank
	.org 0x0100
	nop
	jp	start
	; 0104-014F, the header, is filled in by fix_header.py

	.area _CODE
start::
	di
	ld	sp,#0xE000
	ld	b,a			; 11 on a Game Boy Color
	xor	a,a
	ldh	(NR52),a		; the game has no sound
	call	lcd_wait_off
	call	clear_ram
	ld	a,b
	cp	a,#0x11
	jr	nz,1$
	ld	a,#1
	ldh	(hColor),a
1$:	call	dma_install
	call	load_palettes
	call	load_font
	xor	a,a
	ldh	(IF),a
	ld	a,#0x01			; VBlank
	ldh	(IE),a
	ei
	call	title_run		; carry: continue
	jr	c,2$
	call	new_game
2$:	call	load_sprites
	call	map_enter
	call	map_entry_script
main_loop::
	call	wait_frame
	call	read_joypad
	call	player_update
	jr	main_loop

; A new game: where the map files say that it begins.
new_game:
	ld	a,#START_MAP
	ld	(wCurMap),a
	ld	(wLastBlackoutMap),a
	ld	a,#START_X
	ld	(wXCoord),a
	ld	(wLastBlackoutX),a
	ld	a,#START_Y
	ld	(wYCoord),a
	ld	(wLastBlackoutY),a
	ld	a,#0x03			; 300
	ld	(wPlayerMoney + 1),a
	ld	a,#0xFF
	ld	(wBagItems),a
	ld	(wPartySpecies),a
	ldh	a,(DIV)			; chance begins with the moment of the button
	ld	(rng),a
	ld	a,#0x5D			; never both 0
	ld	(rng + 1),a
	ret

; Clear the variables, OAM's shadow and high RAM. Keeps B.
clear_ram:
	ld	hl,#shadow_oam
	ld	de,#RAM_SIZE
1$:	xor	a,a
	ld	(hl+),a
	dec	de
	ld	a,d
	or	a,e
	jr	nz,1$
	ld	hl,#h_dma
	ld	c,#<HRAM_SIZE
2$:	ld	(hl+),a
	dec	c
	jr	nz,2$
	ld	a,#SCREEN_LINES
	ldh	(hWY),a
	ret
