; JOY_DIVERGE_PERSIST: environments that go different ways and stay apart. Each iteration reads the buttons; a pressed
; one changes the mode byte at C100, which selects one of four inner loops: ALU, writes with stride 1, writes with stride
; 17, branches. C000-C00F: signature of the way so far, C010 the mode.
	.module joy_diverge_persist
	.include "common.inc"

MODE = 0xC100
STEP = 0xC101

	.area _CODE
begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	ld	(MODE),a
	ld	(STEP),a
round:
	ldh	a,(turn)
	inc	a
	ldh	(turn),a
	PUT	P1, 0x20
	ldh	a,(P1)
	ldh	a,(P1)
	cpl
	and	a,#0x0F
	swap	a
	ld	b,a
	PUT	P1, 0x10
	ldh	a,(P1)
	ldh	a,(P1)
	cpl
	and	a,#0x0F
	or	a,b
	ld	b,a			; directions in bits 7-4, buttons in bits 3-0
	PUT	P1, 0x30
	ld	a,(MODE)		; mode = mode * 5 + buttons: what was pressed stays in it
	ld	c,a
	add	a,a
	add	a,a
	add	a,c
	add	a,b
	ld	c,a
	ld	a,b
	or	a,a
	jr	z,1$
	ld	a,c
	ld	(MODE),a
1$:	ld	a,(MODE)
	ld	(0xC010),a
	rrca
	rrca
	xor	a,b
	and	a,#3
	ld	hl,#modes
	add	a,a
	ld	e,a
	ld	d,#0
	add	hl,de
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	de,#sign
	push	de
	jp	(hl)
modes:
	.dw	arithmetic, stride1, stride17, branches

; Mix the mode and what the inner loop left in A into the signature.
sign:
	ld	b,a
	ld	a,(STEP)
	inc	a
	and	a,#0x0F
	ld	(STEP),a
	ld	l,a
	ld	h,#0xC0
	ld	a,(MODE)
	add	a,(hl)
	rlca
	xor	a,b
	ld	(hl),a
	jp	round

arithmetic:
	ld	b,#32
	ld	a,(MODE)
1$:	add	a,b
	rlca
	xor	a,#0x5D
	sbc	a,b
	dec	b
	jr	nz,1$
	ret

stride1:
	ld	a,(MODE)
	ld	hl,#0xC400
	ld	b,#64
1$:	ld	(hl+),a
	inc	a
	dec	b
	jr	nz,1$
	ret

stride17:
	ld	a,(MODE)
	ld	hl,#0xC800
	ld	de,#17
	ld	b,#48
1$:	ld	(hl),a
	add	hl,de
	add	a,l
	dec	b
	jr	nz,1$
	ret

branches:
	ld	a,(MODE)
	ld	c,a
	ld	b,#40
1$:	srl	c
	jr	nc,2$
	ld	a,c
	xor	a,#0xB8
	ld	c,a
	bit	0,c
	jr	z,3$
	call	4$
2$:	inc	c
	bit	4,c
	call	z,4$
3$:	dec	b
	jr	nz,1$
	ld	a,c
	ret
4$:	ld	a,c
	add	a,b
	ld	c,a
	ret
