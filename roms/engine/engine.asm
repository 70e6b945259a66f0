; What ORCHARD and STOREROOM share: vectors, start-up, the main loop, interrupts, buttons, chance, pictures, music.
; A game has game_begin (LCD off: draw the field), game_frame (a frame of playing) and stat (the LY = LYC interrupt).
	.module engine
	.include "hardware.inc"
	.include "art.inc"

	.area _HEADER (ABS)
	.org 0x0040
	jp	vblank
	.org 0x0048
	jp	stat
	.org 0x0050
	jp	timer
	.org 0x0100
	nop
	jp	start
	; 0104-014F, the header, is filled in by fix_header.py

	.area _CODE
start::
	di
	ld	sp,#0xE000
	call	lcd_wait_off
	call	clear_ram
	call	dma_install
	call	load_tiles
	call	sound_on
	xor	a,a
	ldh	(IF),a
	ld	a,#0x07			; VBlank, STAT, timer
	ldh	(IE),a
	ei
	ld	a,(seed_set)
	cp	a,#SEED_SET
	call	nz,title_run
new_game:
	call	random_seed
	ld	a,#PLAYING
	ld	(game_state),a
	call	game_begin
	call	lcd_on
main_loop:
	call	wait_frame
	call	read_joypad
	ld	a,(game_state)
	cp	a,#PLAYING
	jr	nz,1$
	call	game_frame
	jr	main_loop
1$:	ldh	a,(h_keys_new)		; lost or won: START leads to the title
	and	a,#KEY_START
	jr	z,main_loop
	call	lcd_off
	call	title_run
	jr	new_game

; Clear the variables, OAM's shadow and high RAM, but not the seed.
clear_ram:
	ld	hl,#shadow_oam
	ld	b,#160
	call	clear
	ld	hl,#variables
	ld	b,#0			; 256
	call	clear
	ld	hl,#h_dma
	ld	b,#h_end - h_dma
clear:
	xor	a,a
1$:	ld	(hl+),a
	dec	b
	jr	nz,1$
	ret

; Show the title until START is pressed, whose moment becomes the seed. Called and left with the LCD off.
title_run:
	xor	a,a
	ld	(game_state),a
	call	clear_sprites
	ld	de,#MAP
	ld	hl,#title_screen
	ld	c,#18
	call	draw_screen
	call	lcd_on
	ld	a,#NO_LINE
	ldh	(h_lyc),a
	ldh	(LYC),a
	ld	a,#144
	ldh	(WY),a
1$:	call	wait_frame
	call	read_joypad
	ld	hl,#title_frames
	inc	(hl)
	ldh	a,(h_keys_new)
	and	a,#KEY_START
	jr	z,1$
	ldh	a,(DIV)
	ld	(seed),a
	ld	a,(hl)
	ld	(seed + 1),a

; Switch the LCD off right after the VBlank handler.
lcd_off::
	call	wait_frame
	xor	a,a
	ldh	(LCDC),a
	ldh	(SCX),a
	ret

; Switch the LCD off inside of VBlank, by waiting for LY. Used once, before interrupts are on.
lcd_wait_off:
1$:	ldh	a,(LY)
	cp	a,#144
	jr	c,1$
	xor	a,a
	ldh	(LCDC),a
	ret

; Switch the LCD on, with the window at the bottom.
lcd_on::
	ld	a,#7
	ldh	(WX),a
	ld	a,#WINDOW_TOP
	ldh	(WY),a
	ld	a,#PALETTE
	ldh	(BGP),a
	ld	a,#SPRITE_PALETTE
	ldh	(OBP0),a
	ldh	a,(h_lyc)
	ldh	(LYC),a
	ld	a,#STAT_LYC
	ldh	(STAT),a
	ld	a,#LCDC_PLAY
	ldh	(LCDC),a
	ret

; Everything that video memory may see happens here, once a frame.
vblank:
	push	af
	push	bc
	push	de
	push	hl
	call	queue_flush
	call	h_dma
	ld	a,#PALETTE
	ldh	(BGP),a
	xor	a,a
	ldh	(SCX),a
	ldh	a,(h_lyc)
	ldh	(LYC),a
	ld	a,#1
	ldh	(h_frame),a
	pop	hl
	pop	de
	pop	bc
	pop	af
	reti

	.globl	wait_frame
	.include "wait_frame.inc"

	.include "oam_dma.inc"

	.include "joypad.inc"

; The level's chance from its seed; a state of 0 would stay 0. Neighbouring seeds have to be driven apart.
random_seed::
	ld	hl,#seed
	ld	a,(hl+)
	xor	a,#0x2B
	ld	e,a
	ld	a,(hl)
	xor	a,#0x5D
	ld	d,a
	or	a,e
	jr	nz,1$
	inc	e
1$:	ld	hl,#rng
	ld	a,e
	ld	(hl+),a
	ld	(hl),d
	ld	b,#16
2$:	call	random
	dec	b
	jr	nz,2$
	ret

; A = the next random number, of a 16-bit xorshift (7, 9, 8). Changes HL.
random::
	.include "random.inc"
	ret

; A = a random number below B. Changes HL.
random_below::
	call	random
1$:	cp	a,b
	ret	c
	sub	a,b
	jr	1$

; Put tile A at DE in video memory at the next VBlank.
queue_tile::
	push	hl
	push	bc
	ld	b,a
	ld	a,(queue_count)
	ld	c,a
	add	a,a
	add	a,c
	ld	c,a
	ld	hl,#queue
	ld	a,b
	ld	b,#0
	add	hl,bc
	ld	(hl),d
	inc	hl
	ld	(hl),e
	inc	hl
	ld	(hl),a
	ld	hl,#queue_count
	inc	(hl)
	pop	bc
	pop	hl
	ret

queue_flush:
	ld	hl,#queue_count
	ld	a,(hl)
	or	a,a
	ret	z
	ld	b,a
	ld	(hl),#0
	ld	hl,#queue
1$:	ld	a,(hl+)
	ld	d,a
	ld	a,(hl+)
	ld	e,a
	ld	a,(hl+)
	ld	(de),a
	dec	b
	jr	nz,1$
	ret

; Put a line of text at HL, ended by 0, to DE in the window's map.
queue_text::
	ld	a,(hl+)
	or	a,a
	ret	z
	call	queue_tile
	inc	de
	jr	queue_text

; Put the two digits of A to DE.
queue_number::
	ld	b,#FONT_0
1$:	cp	a,#10
	jr	c,2$
	sub	a,#10
	inc	b
	jr	1$
2$:	ld	c,a
	ld	a,b
	call	queue_tile
	inc	de
	ld	a,c
	add	a,#FONT_0
	jp	queue_tile

; Put a 16x16 picture at OAM's Y = B, X = C: tiles D to D+3 into the two sprites at HL. Moves HL and C on.
sprite_put::
	call	1$
	inc	d
	inc	d
1$:	ld	a,b
	ld	(hl+),a
	ld	a,c
	ld	(hl+),a
	add	a,#8
	ld	c,a
	ld	a,d
	ld	(hl+),a
	xor	a,a
	ld	(hl+),a
	ret

; All sprites off the screen.
clear_sprites::
	ld	hl,#shadow_oam
	ld	b,#160
	jp	clear

; Copy C rows of 20 tile numbers from HL in the bank of screens to DE, in a map 32 wide.
draw_screen::
	ld	a,#BANK_SCREENS
	call	bank
1$:	ld	b,#20
2$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	b
	jr	nz,2$
	ld	b,#12			; what only shows when the picture is scrolled
	dec	hl
	ld	a,(hl+)
3$:	ld	(de),a
	inc	de
	dec	b
	jr	nz,3$
	dec	c
	jr	nz,1$
	ret

; The sprites' tiles to 8000, the background's to 9000.
load_tiles:
	ld	a,#BANK_TILES
	call	bank
	ld	hl,#sprite_tiles
	ld	de,#0x8000
	ld	bc,#SPRITE_TILES_SIZE
	call	copy
	ld	hl,#map_tiles
	ld	de,#0x9000
	ld	bc,#MAP_TILES_SIZE
copy:
	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	bc
	ld	a,b
	or	a,c
	jr	nz,copy
	ret

; Select ROM bank A; an interrupt puts it back.
bank:
	ldh	(h_bank),a
	ld	(ROM_BANK),a
	ret

sound_on:
	ld	a,#0x80
	ldh	(NR52),a
	ld	a,#0x33
	ldh	(NR50),a
	ld	a,#0x22			; channel 2 on both sides
	ldh	(NR51),a
	ld	a,#0x80			; half duty
	ldh	(NR21),a
	ld	a,#0x53			; fading out
	ldh	(NR22),a
	xor	a,a
	ldh	(TMA),a
	inc	a
	ld	(music_wait),a
	ld	a,#0x04			; 4,096 Hz: 16 interrupts a second
	ldh	(TAC),a
	ret

; The timer interrupt: the next note of the song, where it is due.
timer:
	push	af
	push	hl
	ld	hl,#music_wait
	dec	(hl)
	jr	nz,2$
	ld	(hl),#NOTE_TICKS
	push	de
	ld	a,#BANK_SCREENS
	ld	(ROM_BANK),a
	ld	a,(music_at)
	ld	e,a
	ld	d,#0
	ld	hl,#song
	add	hl,de
	inc	a
	inc	a
	cp	a,#SONG_SIZE
	jr	c,1$
	xor	a,a
1$:	ld	(music_at),a
	ld	a,(hl+)
	ldh	(NR23),a
	ld	a,(hl)
	ldh	(NR24),a		; bit 7 begins the note; a rest has none
	ldh	a,(h_bank)
	ld	(ROM_BANK),a
	pop	de
2$:	pop	hl
	pop	af
	reti

	.area _WRAM			; C000
shadow_oam::	.ds 160			; copied to OAM at every VBlank; page-aligned
seed::		.ds 2			; of the level, low byte first; read when a game begins
seed_set::	.ds 1			; SEED_SET: set from outside before the game starts
variables::
game_state::	.ds 1			; TITLE, PLAYING, LOST, WON
rng::		.ds 2
title_frames::	.ds 1
music_wait::	.ds 1			; ticks until the next note
music_at::	.ds 1
queue_count::	.ds 1			; tiles that wait
queue::		.ds QUEUE_SIZE * 3	; address, high byte first, and tile

	.area _HRAM			; FF80
h_dma::		.ds 12			; the OAM DMA routine
h_frame::	.ds 1			; set by the VBlank handler
h_keys::	.ds 1			; buttons held
h_keys_new::	.ds 1			; buttons that went down in this frame
h_lyc::		.ds 1			; the first line of a frame at which stat is called
h_bank::	.ds 1			; the ROM bank of the main program
h_end::
