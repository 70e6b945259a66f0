; The battery-backed save RAM at A000: a mark and a version, where the player is and how far
; the quest, and the sum of that. The cartridge is written to by SAVE in the menu only.
	.module save
	.include "hardware.inc"

SAVE_MARK  = 0xA000			; "HOME"; A004: the version
SAVE_DATA  = 0xA005			; map, column, row, facing, quest_flags
SAVE_SUM   = 0xA00A
DATA_SIZE  = 5
MARK_SIZE  = 5

	.area _CODE

; save_found = 1 if the cartridge holds a save that is whole.
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
	cp	a,(hl)
	jr	nz,save_close
	ld	a,#1
	ld	(save_found),a
	jr	save_close

; Write the save. The sum comes last, so that half a save is none.
save_write::
	call	save_open
	ld	hl,#SAVE_SUM
	dec	(hl)			; not the sum of what was there
	ld	hl,#SAVE_MARK
	ld	de,#mark
	ld	b,#MARK_SIZE
	call	copy
	ld	de,#player_map		; map, column, row, facing lie in this order
	ld	b,#DATA_SIZE - 1
	call	copy
	ld	a,(quest_flags)
	ld	(hl),a
	call	save_sum
	ld	(hl),a
	jr	save_close

; Take the player's place and the flags from the save. Z stays set.
save_load::
	call	save_open
	ld	de,#SAVE_DATA
	ld	hl,#player_map
	ld	b,#DATA_SIZE - 1
	call	copy
	ld	a,(de)
	ld	(quest_flags),a

save_close:
	xor	a,a
	ld	(MBC_RAM_ENABLE),a
	ret

save_open:
	ld	a,#0x0A
	ld	(MBC_RAM_ENABLE),a
	xor	a,a
	ld	(MBC_RAM_BANK),a
	ret

; A = the sum of the data, inverted; HL = SAVE_SUM.
save_sum:
	ld	hl,#SAVE_DATA
	ld	b,#DATA_SIZE
	xor	a,a
1$:	add	a,(hl)
	inc	hl
	dec	b
	jr	nz,1$
	cpl
	ret

; Copy B bytes from DE to HL.
copy:
	ld	a,(de)
	inc	de
	ld	(hl+),a
	dec	b
	jr	nz,copy
	ret

mark:	.ascii	"HOME"
	.db	2
