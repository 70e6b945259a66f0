; The save in the battery RAM at A000: a mark with a version, the variables from wMainDataStart to wMainDataEnd, and
; their sum. Only SAVE in the menu writes there.
	.module save
	.include "game.inc"

SAVE_MARK = 0xA000			; "GATE"; A004: the version
SAVE_DATA = 0xA005
MARK_SIZE = 5

	.area _CODE

; Carry: the cartridge holds a save that is whole.
save_check::
	call	save_open
	ld	hl,#SAVE_MARK
	ld	de,#mark
	ld	b,#MARK_SIZE
1$:	ld	a,(de)
	cp	a,(hl)
	jr	nz,save_close
	inc	de
	inc	hl
	dec	b
	jr	nz,1$
	call	save_sum
	ld	a,(hl+)
	cp	a,e
	jr	nz,save_close
	ld	a,(hl)
	cp	a,d
	jr	nz,save_close
	call	save_close
	scf
	ret

; Write the save. The sum comes last, so that half a save is none.
save_write::
	call	save_open
	ld	hl,#mark
	ld	de,#SAVE_MARK
	ld	bc,#MARK_SIZE
	call	copy
	ld	hl,#wMainDataStart
	ld	de,#SAVE_DATA
	ld	bc,#MAIN_SIZE
	call	copy
	call	save_sum
	ld	a,e
	ld	(hl+),a
	ld	(hl),d
	jr	save_close

save_load::
	call	save_open
	ld	hl,#SAVE_DATA
	ld	de,#wMainDataStart
	ld	bc,#MAIN_SIZE
	call	copy

save_close:
	xor	a,a			; no carry
	ld	(MBC_RAM_ENABLE),a
	ret

save_open:
	ld	a,#0x0A
	ld	(MBC_RAM_ENABLE),a
	xor	a,a
	ld	(MBC_RAM_BANK),a
	ret

; DE = the sum of the data, inverted; HL = where it is kept.
save_sum:
	ld	hl,#SAVE_DATA
	ld	bc,#MAIN_SIZE
	ld	de,#0
1$:	ld	a,(hl+)
	add	a,e
	ld	e,a
	jr	nc,2$
	inc	d
2$:	dec	bc
	ld	a,b
	or	a,c
	jr	nz,1$
	ld	a,d
	cpl
	ld	d,a
	ld	a,e
	cpl
	ld	e,a
	ret

mark:	.ascii	"GATE"
	.db	1
