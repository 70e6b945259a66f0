; WINDOW_SPRITE: window and sprites in many settings: WX 0-7, 166, 167, 255, WY changed within the frame, the window switched
; off and on again, 8x16 sprites, X=0, X>=168, more than 10 on a line, priorities with LCDC bit 0 clear, equal X, OAM DMA
; from every kind of memory, the length of mode 3 measured.
	.module window_sprite
	.include "common.inc"

	.area _CODE
begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	call	lcd_off
	call	make_picture
	ld	hl,#dma_routine
	ld	de,#0xFFB0
	ld	bc,#(dma_end - dma_routine)
	call	copy
	ld	hl,#0xC400		; sources for transfers
	ld	bc,#0x0200
	ld	a,#0x11
	call	fill
	PUT	LCDC, 0x93
round:
	call	next_turn
	call	sprites
	ld	hl,#settings
	ldh	a,(turn)
	and	a,#0x0F
	add	a,a
	add	a,a
	ld	e,a
	ld	d,#0
	add	hl,de
	ld	a,#146
	call	wait_line
	ld	a,(hl+)
	ldh	(LCDC),a
	ld	a,(hl+)
	ldh	(WX),a
	ld	a,(hl+)
	ldh	(WY),a
	ld	a,(hl+)
	ldh	(SCX),a
	ldh	(SCY),a
	ld	a,#0xC1
	call	0xFFB0
	call	within_frame
	call	measure
	call	transfers
	jp	round

; LCDC, WX, WY, SCX and SCY
settings:
	.db	0xF3, 7, 0, 0,      0xF7, 0, 20, 3,    0xB3, 6, 100, 5,   0xE3, 166, 1, 7
	.db	0xF2, 80, 40, 1,    0xB6, 167, 0, 2,   0xF3, 255, 10, 8,  0xD3, 7, 0, 4
	.db	0xF7, 3, 143, 6,    0xF3, 165, 60, 0,  0x92, 7, 0, 9,     0xB2, 8, 0, 0xFD
	.db	0x97, 0, 0, 0x7C,   0xFB, 88, 72, 11,  0xE6, 1, 0, 13,    0xF1, 40, 5, 250

; 40 sprites from a table that moves with the round: crowded lines, all the edges of X.
sprites:
	ld	hl,#0xC100
	ldh	a,(turn)
	ld	b,a
	ld	c,#40
1$:	ld	a,b
	and	a,#0x3F
	add	a,#14
	ld	(hl+),a			; Y: 64 lines for 40 sprites
	ld	a,c
	and	a,#0x0F
	push	hl
	ld	hl,#columns
	ld	e,a
	ld	d,#0
	add	hl,de
	ld	a,(hl)
	pop	hl
	ld	(hl+),a			; X
	ld	a,b
	rlca
	xor	a,c
	ld	(hl+),a			; tile
	swap	a
	add	a,b
	ld	(hl+),a			; attributes
	ld	a,b
	add	a,#0x13
	bit	1,c
	jr	z,2$
	sub	a,#0x11
2$:	ld	b,a
	dec	c
	jr	nz,1$
	ret
columns:
	.db	0, 1, 7, 8, 9, 16, 80, 80, 84, 159, 160, 167, 168, 169, 255, 12

; WY, WX, LCDC change on the way down.
within_frame:
	ld	a,#30
	call	wait_line
	ldh	a,(WY)
	add	a,#9
	ldh	(WY),a
	ld	a,#50
	call	wait_line
	ldh	a,(LCDC)
	xor	a,#0x20
	ldh	(LCDC),a
	ld	a,#61
	call	wait_line
	ldh	a,(LCDC)
	xor	a,#0x24
	ldh	(LCDC),a
	ld	a,#77
	call	wait_line
	ldh	a,(WX)
	add	a,#5
	ldh	(WX),a
	ld	a,#90
	call	wait_line
	ldh	a,(LCDC)
	xor	a,#0x01
	ldh	(LCDC),a
	ldh	a,(LY)
	inc	a
	ldh	(WY),a
	ld	a,#101
	call	wait_line
	ldh	a,(LCDC)
	xor	a,#0x43
	ldh	(LCDC),a
	ld	a,#120
	call	wait_line
	ldh	a,(LCDC)
	xor	a,#0x52
	ldh	(LCDC),a
	ret

; How long mode 3 takes on 24 lines: STAT polled from mode 2 on.
measure:
	ld	a,#12
	call	wait_line
	ld	d,#24
1$:	ldh	a,(STAT)
	and	a,#3
	cp	a,#2
	jr	nz,1$
	call	wait_phase
	ld	b,#0
2$:	inc	b
	ldh	a,(STAT)
	and	a,#3
	jr	nz,2$
	ld	a,b
	call	log
	ldh	a,(SCX)
	inc	a
	ldh	(SCX),a
	dec	d
	jr	nz,1$
	ret

; From ROM, VRAM, cartridge RAM, WRAM, echo, FE, FF; OAM is looked at on the way; a second transfer cuts the first short.
transfers:
	ld	hl,#pages
1$:	ld	a,(hl+)
	or	a,a
	jr	z,4$
	push	hl
	ldh	(DMA),a			; the code here is in ROM and goes on
	ld	hl,#0xFE00
	ld	a,(hl)
	call	log
	ld	a,(0xFE9F)
	call	log
	ld	(hl),#0x77
	ld	d,h
	ld	e,#0x10
	ld	a,(de)
	call	log
	ld	(de),a
	inc	(hl)
	ld	hl,#0xC410
	inc	(hl)
	ldh	a,(turn)
	and	a,#0x1F
	inc	a
	call	wait_a
	ld	a,(0xFE50)
	call	log
	ld	hl,#0xFE30
	ld	a,(hl)
	call	log
	SEE	DMA
	ld	a,#12
	call	wait_a
	ld	hl,#0xFE9F
	ld	a,(hl)
	call	log
	ld	a,(hl)
	call	log
	pop	hl
	jr	1$
4$:	PUT	DMA, 0xC4
	PUT	DMA, 0xC5
	nop
	PUT	DMA, 0xC4
	ld	a,#6
	call	wait_a
	PUT	DMA, 0xC5
	ld	a,(0xFE00)
	call	log
	ld	(0xFF46),sp
	xor	a,a
	ldh	(BGP),a
	ld	a,#12
	call	wait_a
	PUT	BGP, 0xE4
	ld	a,#0xC1
	jp	0xFFB0
pages:
	.db	0x01, 0x40, 0x80, 0x98, 0xA0, 0xC4, 0xE4, 0xFE, 0xFF, 0xF1, 0xDF, 0x7F, 0

dma_routine:
	ldh	(DMA),a
	ld	a,#40
1$:	dec	a
	jr	nz,1$
	ret
dma_end:
