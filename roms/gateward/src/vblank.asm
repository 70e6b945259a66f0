; The VBlank interrupt handler, the OAM DMA routine, waiting for a frame, and the buttons.
	.module vblank
	.include "game.inc"

	.area _CODE

; Everything that video memory may see happens here, once a frame.
vblank::
	push	af
	push	bc
	push	de
	push	hl
	ldh	a,(hTransfer)
	or	a,a
	call	nz,transfer
	call	h_dma
	ldh	a,(hSCX)
	ldh	(SCX),a
	ldh	a,(hSCY)
	ldh	(SCY),a
	ldh	a,(hWY)
	ldh	(WY),a
	ld	a,#1
	ldh	(h_frame),a
	pop	hl
	pop	de
	pop	bc
	pop	af
	reti

; Copy a third of wTileMap, six rows, to the window's map. A box is the lowest third at the map's top.
transfer:
	ld	b,a
	rrca
	jr	c,1$
	rrca
	jr	c,2$
	ld	de,#wTileMap + 240
	res	2,b
	ldh	a,(hFullScreen)
	or	a,a
	ld	hl,#WINDOW_MAP
	jr	z,3$
	ld	hl,#WINDOW_MAP + 12 * 32
	jr	3$
1$:	ld	de,#wTileMap
	res	0,b
	ld	hl,#WINDOW_MAP
	jr	3$
2$:	ld	de,#wTileMap + 120
	res	1,b
	ld	hl,#WINDOW_MAP + 6 * 32
3$:	ld	a,b
	ldh	(hTransfer),a
	ld	c,#6
4$:	.rept 20
	ld	a,(de)
	inc	de
	ld	(hl+),a
	.endm
	ld	a,l
	add	a,#12
	ld	l,a
	jr	nc,5$
	inc	h
5$:	dec	c
	jp	nz,4$
	ret

	.globl	wait_frame, dma_install, read_joypad
	.include "wait_frame.inc"

	.include "oam_dma.inc"

	.include "joypad.inc"
