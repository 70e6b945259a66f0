; Boxes and menus: what is written to wTileMap, and how it comes to the screen.
	.module ui
	.include "game.inc"
	.include "data.inc"

BOX   = SCREEN_AT + 12 * COLUMNS
LINES = BOX + COLUMNS + 1		; the first of four lines of a box
MORE  = BOX + 5 * COLUMNS + 18		; where a box shows that it waits

	.area _CODE

; Bring thirds A of wTileMap to the screen, a third a frame.
ui_flush::
	ldh	(hTransfer),a
1$:	call	wait_frame
	ldh	a,(hTransfer)
	or	a,a
	jr	nz,1$
	ret

; Fill wTileMap with spaces.
screen_clear::
	ld	hl,#wTileMap
	ld	bc,#360
1$:	ld	a,#TILE_SPACE
	ld	(hl+),a
	dec	bc
	ld	a,b
	or	a,c
	jr	nz,1$
	ret

; Show wTileMap as the whole screen, and no sprites.
full_open::
	ld	a,#1
	ldh	(hFullScreen),a
	call	sprites_clear
	ld	a,#ALL
	call	ui_flush
	xor	a,a
	ldh	(hWY),a
	ret

; Back to the world.
full_close::
	xor	a,a
	ldh	(hFullScreen),a
	ld	(wTextBoxOpen),a
	ld	a,#SCREEN_LINES
	ldh	(hWY),a
	jp	sprites_draw

; Draw a frame of B rows and C columns of tiles from DE on, with spaces in it.
frame_draw::
	ld	hl,#frame_top
	call	frame_row
	dec	b
	dec	b
1$:	ld	hl,#frame_middle
	call	frame_row
	dec	b
	jr	nz,1$
	ld	hl,#frame_bottom
; One row: left end, middle, right end at HL. DE = the next row.
frame_row:
	push	de
	push	bc
	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	c
	dec	c
	ld	a,(hl+)
1$:	ld	(de),a
	inc	de
	dec	c
	jr	nz,1$
	ld	a,(hl)
	ld	(de),a
	pop	bc
	pop	hl
	ld	de,#COLUMNS
	add	hl,de
	ld	d,h
	ld	e,l
	ret

frame_top:	.db	TILE_TOP_LEFT, TILE_TOP, TILE_TOP_RIGHT
frame_middle:	.db	TILE_LEFT, TILE_SPACE, TILE_RIGHT
frame_bottom:	.db	TILE_BOTTOM_LEFT, TILE_BOTTOM, TILE_BOTTOM_RIGHT

; An empty text box in the lower third of wTileMap; in the world the window comes up.
box_open::
	ld	de,#BOX
	ld	bc,#(6 << 8) | COLUMNS
	call	frame_draw
	ldh	a,(hFullScreen)
	or	a,a
	ret	nz
	ld	hl,#wTextBoxOpen
	ld	a,(hl)
	or	a,a
	ret	nz
	inc	(hl)
	call	sprites_hide_below
	ld	a,#BOX_LINE
	ldh	(hWY),a
	ret

box_close::
	ldh	a,(hFullScreen)
	or	a,a
	ret	nz
	ld	hl,#wTextBoxOpen
	ld	a,(hl)
	or	a,a
	ret	z
	ld	(hl),#0
	ld	a,#SCREEN_LINES
	ldh	(hWY),a
	jp	sprites_draw

; Show the text at HL in a box; pages but the last wait for a button. HL = behind the text.
text_show::
	push	hl
	call	box_open
	pop	hl
1$:	ld	de,#LINES
2$:	push	de			; the beginning of this line
3$:	ld	a,(hl+)
	cp	a,#TX_STRING + 1
	jr	c,4$
	ld	(de),a
	inc	de
	jr	3$
4$:	cp	a,#TX_STRING
	jr	nz,5$
	push	hl
	ld	hl,#wStringBuffer
	call	print
	pop	hl
	jr	3$
5$:	pop	de
	or	a,a
	jr	z,7$
	cp	a,#TX_PAGE
	jr	z,6$
	push	hl			; TX_LINE
	ld	hl,#COLUMNS
	add	hl,de
	ld	d,h
	ld	e,l
	pop	hl
	jr	2$
6$:	push	hl
	call	wait_more
	call	box_open
	pop	hl
	jr	1$
7$:	ld	a,#BOTTOM
	jp	ui_flush

; Show the text at HL, and wait for a button. HL = behind it.
text_say::
	call	text_show
	push	hl
	call	wait_more
	pop	hl
	ret

; Mark that the box waits, until A or B is pressed.
wait_more::
	ld	a,#TILE_MORE
	ld	(MORE),a
	ld	a,#BOTTOM
	call	ui_flush
wait_button::
	call	wait_frame
	call	read_joypad
	ldh	a,(h_keys_new)
	and	a,#KEY_A | KEY_B
	jr	z,wait_button
	ret

; Put the tiles at HL, up to a 0, to DE; DE = behind them.
print::
	ld	a,(hl+)
	or	a,a
	ret	z
	ld	(de),a
	inc	de
	jr	print

; Put A as a decimal number to DE, without zeros in front; DE = behind it.
print_number::
	ld	c,#0			; bit 0: a digit has been written
	ld	b,#100
	call	1$
	ld	b,#10
	call	1$
	add	a,#TILE_0
	ld	(de),a
	inc	de
	ret
1$:	ld	l,#TILE_0
2$:	cp	a,b
	jr	c,3$
	sub	a,b
	inc	l
	ld	c,#1
	jr	2$
3$:	bit	0,c
	ret	z
	push	af
	ld	a,l
	ld	(de),a
	inc	de
	pop	af
	ret

; Put B bytes of two decimal digits at HL to DE; DE = behind them.
print_digits::
	ld	a,(hl)
	swap	a
	and	a,#0x0F
	add	a,#TILE_0
	ld	(de),a
	inc	de
	ld	a,(hl+)
	and	a,#0x0F
	add	a,#TILE_0
	ld	(de),a
	inc	de
	dec	b
	jr	nz,print_digits
	ret

; A bar of six tiles at DE for A of B: 48 parts. Never empty where A is not 0.
print_bar::
	or	a,a
	jr	z,2$
	ld	l,a
	ld	h,#0
	ld	c,b
	ld	a,#48
	push	bc
	push	de
	call	multiply
	pop	de
	pop	bc
	call	divide
	ld	a,l
	or	a,a
	jr	nz,2$
	inc	a
2$:	ld	b,#6
3$:	cp	a,#8
	jr	c,4$
	sub	a,#8
	ld	l,#TILE_BAR + 8
	jr	5$
4$:	add	a,#TILE_BAR
	ld	l,a
	xor	a,a
5$:	ld	h,a
	ld	a,l
	ld	(de),a
	inc	de
	ld	a,h
	dec	b
	jr	nz,3$
	ret

; Let the player choose one of wMenuCount lines. A = the choice; carry: B instead of A.
menu_run::
	ld	a,#1
	ld	(wMenuOpen),a
	call	menu_wait
	push	af
	xor	a,a
	ld	(wMenuOpen),a
	pop	af
	ret
menu_wait:
1$:	ld	a,(wMenuCount)		; the cursor at its line, none at the others
	ld	b,a
	ld	c,#0
	ld	hl,#wMenuAt
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
2$:	ld	a,(wCurrentMenuItem)
	cp	a,c
	ld	a,#TILE_SPACE
	jr	nz,3$
	ld	a,#TILE_CURSOR
3$:	ld	(hl),a
	ld	a,(wMenuStride)
	call	add_hl_a
	inc	c
	dec	b
	jr	nz,2$
	ld	a,(wMenuThirds)
	call	ui_flush
4$:	call	wait_frame
	call	read_joypad
	ldh	a,(h_keys_new)
	ld	b,a
	ld	hl,#wCurrentMenuItem
	ld	a,(hl)
	bit	0,b			; KEY_A
	jr	nz,7$
	bit	1,b			; KEY_B
	scf
	ret	nz
	bit	6,b			; KEY_UP
	jr	nz,5$
	bit	7,b			; KEY_DOWN
	jr	z,4$
	inc	(hl)
	ld	a,(wMenuCount)
	cp	a,(hl)
	jr	nz,1$
	ld	(hl),#0
	jr	1$
5$:	or	a,a
	jr	nz,6$
	ld	a,(wMenuCount)
6$:	dec	a
	ld	(hl),a
	jr	1$
7$:	or	a,a			; no carry
	ret

; Prepare a menu: HL = place of the cursor, B = lines, C = from line to line, A = thirds. The cursor is at the first.
menu_set::
	ld	(wMenuThirds),a
	ld	a,l
	ld	(wMenuAt),a
	ld	a,h
	ld	(wMenuAt + 1),a
	ld	a,b
	ld	(wMenuCount),a
	ld	a,c
	ld	(wMenuStride),a
	xor	a,a
	ld	(wCurrentMenuItem),a
	ret

; Ask YES or NO in the lower half of an open box. The cursor begins at NO. Z: YES.
ask::
	ld	de,#LINES + 2 * COLUMNS + 2
	ld	hl,#str_yes
	call	print
	ld	de,#LINES + 3 * COLUMNS + 2
	ld	hl,#str_no
	call	print
	ld	hl,#LINES + 2 * COLUMNS + 1
	ld	bc,#(2 << 8) | COLUMNS
	ld	a,#BOTTOM
	call	menu_set
	ld	a,#1
	ld	(wCurrentMenuItem),a
	inc	a
	call	box_mark
	call	menu_run
	jr	nc,1$
	ld	a,#1			; B says no
1$:	push	af
	ld	a,#1
	call	box_mark
	pop	af
	or	a,a
	ret

; wTextBoxOpen = A where a box is open in the world.
box_mark:
	ld	b,a
	ldh	a,(hFullScreen)
	or	a,a
	ret	nz
	ld	a,b
	ld	(wTextBoxOpen),a
	ret
