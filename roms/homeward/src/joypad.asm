; The buttons.
	.module joypad
	.include "hardware.inc"

	.area _CODE

; Read both rows into h_keys; what was not held before also into h_keys_new.
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
	ldh	a,(h_keys)
	cpl
	and	a,b
	ldh	(h_keys_new),a
	ld	a,b
	ldh	(h_keys),a
	ret
