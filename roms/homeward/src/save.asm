; The battery-backed save RAM at A000. So far it holds a mark and a version only.
	.module save
	.include "hardware.inc"

SAVE_MARK    = 0xA000
SAVE_VERSION = 0xA004
VERSION      = 1

	.area _CODE

; Look for the mark of a save. Without it, write the mark and the version.
save_check::
	ld	a,#0x0A
	ld	(MBC_RAM_ENABLE),a
	xor	a,a
	ld	(MBC_RAM_BANK),a
	ld	hl,#SAVE_MARK
	ld	de,#mark
	ld	b,#4
1$:	ld	a,(de)
	cp	a,(hl)
	jr	nz,format
	inc	de
	inc	hl
	dec	b
	jr	nz,1$
	ld	a,#1
	ld	(save_found),a
	jr	close

format:
	ld	hl,#SAVE_MARK
	ld	de,#mark
	ld	b,#4
1$:	ld	a,(de)
	ld	(hl+),a
	inc	de
	dec	b
	jr	nz,1$
	ld	a,#VERSION
	ld	(SAVE_VERSION),a
close:
	xor	a,a
	ld	(MBC_RAM_ENABLE),a
	ret

mark:	.ascii	"HOME"
