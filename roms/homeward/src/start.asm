; Interrupt vectors, entry point, start-up and the main loop.
	.module start
	.include "hardware.inc"
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
	xor	a,a
	ldh	(NR52),a		; the game has no sound
	call	lcd_wait_off
	call	clear_ram
	call	dma_install
	call	save_check
	ld	a,#SCREEN_LINES
	ldh	(h_wy),a
	ldh	(WY),a
	xor	a,a
	ldh	(IF),a
	ld	a,#0x01			; VBlank
	ldh	(IE),a
	ei
	call	title_run		; A = 0 to continue
	or	a,a
	call	z,save_load
	call	nz,new_game
	ldh	a,(DIV)			; chance begins with the moment of the button
	ld	(rng),a
	call	map_enter

main_loop:
	call	wait_frame
	call	read_joypad
	call	player_update
	call	villager_update
	jr	main_loop

; Put the player where the map says that a new game begins.
new_game:
	ld	a,#START_MAP
	ld	(player_map),a
	ld	a,#START_X
	ld	(player_x),a
	ld	a,#START_Y
	ld	(player_y),a
	ld	a,#START_FACING
	ld	(player_facing),a
	ret

; Clear the variables, OAM's shadow and high RAM.
clear_ram:
	ld	hl,#shadow_oam
	ld	bc,#RAM_SIZE
1$:	xor	a,a
	ld	(hl+),a
	dec	bc
	ld	a,b
	or	a,c
	jr	nz,1$
	ld	hl,#h_dma
	ld	b,#HRAM_SIZE
2$:	ld	(hl+),a
	dec	b
	jr	nz,2$
	ret
