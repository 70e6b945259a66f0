; The VBlank interrupt handler, the OAM DMA routine and the wait for a frame.
	.module vblank
	.include "hardware.inc"

	.area _CODE
	.globl	wait_frame, dma_install

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

	.include "wait_frame.inc"

; Sleep B frames.
wait_frames::
	call	wait_frame
	dec	b
	jr	nz,wait_frames
	ret

	.include "oam_dma.inc"
