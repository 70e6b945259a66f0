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
	call	hDMA
	ldh	a,(hSCX)
	ldh	(SCX),a
	ldh	a,(hSCY)
	ldh	(SCY),a
	ldh	a,(hWY)
	ldh	(WY),a
	ld	a,#1
	ldh	(hFrame),a
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

; Sleep until the next VBlank has been handled.
wait_frame::
	xor	a,a
	ldh	(hFrame),a
1$:	halt
	nop
	ldh	a,(hFrame)
	or	a,a
	jr	z,1$
	ret

; Copy the DMA routine to high RAM, the only memory that the CPU can reach during the transfer.
dma_install::
	ld	hl,#dma_routine
	ld	c,#<hDMA
	ld	b,#dma_routine_end - dma_routine
1$:	ld	a,(hl+)
	ldh	(c),a
	inc	c
	dec	b
	jr	nz,1$
	ret

dma_routine:
	ld	a,#>wShadowOAM
	ldh	(DMA),a
	ld	a,#40			; 40 * 4 + 4 machine cycles
1$:	dec	a
	jr	nz,1$
	ret
dma_routine_end:

; Read both rows of buttons into hJoyHeld; what was not held before also into hJoyPressed.
; A row takes a moment to settle, so it is read more than once.
read_joypad::
	ld	a,#0x20			; direction row
	ldh	(P1),a
	ldh	a,(P1)
	ldh	a,(P1)
	cpl
	and	a,#0x0F
	swap	a
	ld	b,a
	ld	a,#0x10			; button row
	ldh	(P1),a
	ldh	a,(P1)
	ldh	a,(P1)
	ldh	a,(P1)
	ldh	a,(P1)
	cpl
	and	a,#0x0F
	or	a,b
	ld	b,a
	ld	a,#0x30			; neither
	ldh	(P1),a
	ldh	a,(hJoyHeld)
	cpl
	and	a,b
	ldh	(hJoyPressed),a
	ld	a,b
	ldh	(hJoyHeld),a
	ret
