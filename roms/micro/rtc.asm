; RTC: MBC3's clock: latching by 0 and 1, registers that do not latch, writes to all of them, halt, minute, hour, day and
; carry, values beyond their range, registers while RAM is disabled. Never two looks in one cycle, where PyBoy adds host time.
	.module rtc
	.include "mbc.inc"

	.area _CODE
; Latch and log the five registers.
latch:
	SELECT	0x6000, 0x00
	SELECT	0x6000, 0x01
registers:
	ld	b,#0x08
1$:	ld	a,b
	ld	(0x4000),a
	LOOK	0xA000
	inc	b
	ld	a,b
	cp	a,#0x0D
	jr	nz,1$
	ret

; SET_CLOCK day high, day low, hours, minutes, seconds
	.macro	SET_CLOCK high, low, hours, minutes, seconds
	SELECT	0x4000, 0x0C
	SELECT	0xA000, high
	SELECT	0x4000, 0x0B
	SELECT	0xA000, low
	SELECT	0x4000, 0x0A
	SELECT	0xA000, hours
	SELECT	0x4000, 0x09
	SELECT	0xA000, minutes
	SELECT	0x4000, 0x08
	SELECT	0xBFFF, seconds
	.endm

; Let A frames go by.
frames:
	ld	b,a
1$:	ld	a,#144
	call	wait_line
	ld	a,#10
	call	wait_line
	dec	b
	jr	nz,1$
	ret

begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	ldh	(IE),a
	SELECT	0x0000, 0x0A
	call	registers
	call	latch
round:
	call	next_turn
	SELECT	0x0000, 0x0A
	SET_CLOCK 0x01, 0xFF, 23, 59, 58
	call	latch
	ld	a,#75
	call	frames
	call	latch			; 23:59:59
	ld	a,#50
	call	frames
	call	registers		; still what was latched
	SELECT	0x6000, 0x01		; no 0 before it
	call	registers
	call	latch			; day 0 with the carry
	SET_CLOCK 0x80, 0xFF, 23, 59, 59
	ld	a,#61
	call	frames
	call	latch			; day 100h
	SET_CLOCK 0x40, 0x12, 12, 34, 56
	ld	a,#130
	call	frames
	call	latch			; halted
	SELECT	0x4000, 0x0C
	SELECT	0xA000, 0x00
	ld	a,#20
	call	frames
	call	latch
	SET_CLOCK 0xFF, 0xFF, 0xFF, 0xFF, 0xFF
	SET_CLOCK 0x3E, 0xA5, 31, 63, 63
	ld	a,#62
	call	frames
	call	latch			; beyond the range: no carry
	SET_CLOCK 0x00, 0x01, 25, 60, 59
	ld	a,#61
	call	frames
	call	latch
	SELECT	0x0000, 0x00
	call	latch			; FF: disabled
	SELECT	0x4000, 0x08
	SELECT	0xA000, 0x33
	SELECT	0x0000, 0x0A
	call	latch
	SELECT	0x6000, 0x02
	SELECT	0x7FFF, 0xFF
	call	latch
	SELECT	0x4000, 0x00
	call	count_ram
	SELECT	0x4000, 0x03
	call	count_ram
	SELECT	0x4000, 0x07
	call	count_ram
	SELECT	0x4000, 0x0D
	call	count_ram
	call	look_around
	jp	round
