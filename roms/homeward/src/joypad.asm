; The buttons.
	.module joypad
	.include "hardware.inc"

	.area _CODE

	.globl	read_joypad
	.include "joypad.inc"
