; The VBlank interrupt handler, the OAM DMA routine and the wait for a frame.
	.module vblank
	.include "hardware.inc"

	.area _CODE

; Everything that video memory may see happens here, once a frame.
vblank::
	push	af
	push	bc
	push	de
	push	hl
	ldh	a,(h_strip)
	or	a,a
	call	nz,strip_flush
	call	h_dma
	ldh	a,(h_scx)
	ldh	(SCX),a
	ldh	a,(h_scy)
	ldh	(SCY),a
	ldh	a,(h_palette)
	ldh	(BGP),a
	and	a,#0xF3			; sprites: colour 1 is white
	ldh	(OBP0),a
	ld	a,#1
	ldh	(h_frame),a
	pop	hl
	pop	de
	pop	bc
	pop	af
	reti

; Sleep until the next VBlank has been handled.
wait_frame::
	xor	a,a
	ldh	(h_frame),a
1$:	halt
	nop
	ldh	a,(h_frame)
	or	a,a
	jr	z,1$
	ret

; Sleep B frames.
wait_frames::
	call	wait_frame
	dec	b
	jr	nz,wait_frames
	ret

; Copy the DMA routine to high RAM, the only memory that the CPU can reach
; during the transfer (Pan Docs, "OAM DMA Transfer").
dma_install::
	ld	hl,#dma_routine
	ld	c,#<h_dma
	ld	b,#dma_routine_end - dma_routine
1$:	ld	a,(hl+)
	ldh	(c),a
	inc	c
	dec	b
	jr	nz,1$
	ret

dma_routine:
	ld	a,#>shadow_oam
	ldh	(DMA),a
	ld	a,#40			; 40 * 4 + 4 machine cycles
1$:	dec	a
	jr	nz,1$
	ret
dma_routine_end:
