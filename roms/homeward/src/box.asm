; Boxes: the window, which slides up from the lower edge, with text, choices and the menu.
; The world stands still meanwhile.
	.module box
	.include "hardware.inc"
	.include "data.inc"

WINDOW_MAP   = 0x9C00
TEXT_LINE_1  = WINDOW_MAP + 0x21	; inside of the frame
TEXT_LINE_2  = WINDOW_MAP + 0x41
TEXT_MORE    = WINDOW_MAP + 0x72	; in the frame, lower right
TEXT_ROWS    = 4
TEXT_SPEED   = 3			; letters a frame

MENU_ROWS    = 12
MENU_WIDTH   = 10
MENU_BAG     = WINDOW_MAP + 0x21
MENU_ITEM    = WINDOW_MAP + 0x42
MENU_SAVE    = WINDOW_MAP + 0xA1
MENU_CLOSE   = WINDOW_MAP + 0xE1
MENU_SAVED   = WINDOW_MAP + 0x121

	.area _CODE

; Show the text at HL page by page; each waits for A or B.
text_show::
	push	hl
	ld	a,#BOX_TEXT
	ld	(box_kind),a
	ld	bc,#(TEXT_ROWS << 8) | SCREEN_TILES
	call	box_open
	pop	hl
1$:	ld	de,#TEXT_LINE_1
2$:	call	text_letters
	jr	c,2$
	ld	a,(hl+)			; a code
	ld	de,#TEXT_LINE_2
	cp	a,#TEXT_LINE
	jr	z,2$
	push	af
	call	wait_more
	pop	af
	cp	a,#TEXT_PAGE
	jp	nz,box_close
	ld	c,#1			; the next page: clear both lines and the mark
3$:	call	box_row
	inc	c
	bit	2,c			; TEXT_ROWS
	jr	z,3$
	jr	1$

; Write up to TEXT_SPEED letters from HL to DE. Without carry: a code is next.
text_letters:
	call	part_place
	ld	b,#TEXT_SPEED
	jr	letters

; Write the letters at HL, up to a code, to DE.
put_letters:
	call	part_place
	ld	b,#SCREEN_TILES
letters:
	push	de
	ld	de,#box_tiles
	ld	c,#0
1$:	ld	a,(hl)
	cp	a,#FONT_TILE
	jr	c,2$
	ld	(de),a
	inc	de
	inc	hl
	inc	c
	dec	b
	jr	nz,1$
2$:	pop	de
	ld	a,c
	or	a,a
	ret	z
	add	a,e			; a line never crosses a page of addresses
	ld	e,a
	ld	a,c
	call	part_run
	scf
	ret

; Write tile A to DE.
put_tile:
	ld	(box_tiles),a
	call	part_place
	ld	a,#1

; Hand A tiles at box_tiles over to the VBlank handler and wait for it.
part_run:
	ldh	(h_strip_count),a
	ld	a,#STRIP_BOX
	ldh	(h_strip),a
	jp	wait_frame

; The next tiles go to DE.
part_place:
	ld	a,e
	ldh	(h_strip_to),a
	ld	a,d
	ldh	(h_strip_to+1),a
	ret

; In VBlank: write the tiles, and put the window where it has to be.
box_flush::
	ldh	a,(h_strip_to)
	ld	l,a
	ldh	a,(h_strip_to+1)
	ld	h,a
	ldh	a,(h_strip_count)
	ld	b,a
	ld	de,#box_tiles
1$:	ld	a,(de)
	inc	de
	ld	(hl+),a
	dec	b
	jr	nz,1$
	ldh	a,(h_wx)
	ldh	(WX),a
	ldh	a,(h_wy)
	ldh	(WY),a
	xor	a,a			; STRIP_NONE
	ldh	(h_strip),a
	ret

; Show the mark that the text waits, until A or B is pressed.
wait_more:
	ld	de,#TEXT_MORE
	ld	a,#TILE_MORE
	call	put_tile
wait_button:
	call	wait_frame
	call	read_joypad
	ldh	a,(h_keys_new)
	and	a,#KEY_A | KEY_B
	jr	z,wait_button
	ret

; Open an empty box of B rows and C columns of tiles in the lower right: one more
; row comes into view each frame.
box_open::
	ld	a,b
	ld	(box_rows),a
	ld	a,c
	ld	(box_width),a
	ld	a,#SCREEN_TILES
	sub	a,c
	add	a,a
	add	a,a
	add	a,a
	ld	c,a			; C = its leftmost column of pixels
	add	a,#7
	ldh	(h_wx),a
	ld	a,b
	add	a,a
	add	a,a
	add	a,a
	ld	b,a
	ld	a,#SCREEN_LINES
	sub	a,b
	ld	b,a			; B = its topmost line of pixels
	call	sprites_clear_box
	ld	c,#0
1$:	ldh	a,(h_wy)
	sub	a,#8
	ldh	(h_wy),a
	call	box_row
	inc	c
	ld	a,(box_rows)
	cp	a,c
	jr	nz,1$
	ret

box_close::
	ld	a,#SCREEN_LINES
	ldh	(h_wy),a
	xor	a,a			; BOX_NONE
	ld	(box_kind),a
	call	sprites_draw
	ld	c,#0			; any row will do: the window's place goes with it

; Write row C of the box, without content. Changes A, B, DE.
box_row:
	push	hl
	ld	hl,#row_top
	ld	a,c
	or	a,a
	jr	z,1$
	ld	hl,#row_middle
	ld	a,(box_rows)
	dec	a
	cp	a,c
	jr	nz,1$
	ld	hl,#row_bottom
1$:	ld	a,(box_width)
	ld	b,a
	ld	de,#box_tiles
	call	3$			; the left end
	dec	b
2$:	ld	a,(hl)
	ld	(de),a
	inc	de
	dec	b
	jr	nz,2$
	dec	de
	inc	hl
	call	3$			; the right end
	ld	a,c			; row * 32
	swap	a
	add	a,a
	ld	e,a
	ld	a,c
	rrca
	rrca
	rrca
	and	a,#0x1F
	add	a,#>WINDOW_MAP
	ld	d,a
	ld	a,e
	and	a,#0xE0
	ld	e,a
	call	part_place
	pop	hl
	ld	a,(box_width)
	jp	part_run
3$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	ret

row_top:	.db	TILE_TOP_LEFT, TILE_TOP, TILE_TOP_RIGHT
row_middle:	.db	TILE_LEFT, TILE_SPACE, TILE_RIGHT
row_bottom:	.db	TILE_BOTTOM_LEFT, TILE_BOTTOM, TILE_BOTTOM_RIGHT

; Let the player choose one of two lines with the cursor. HL, DE = its places in
; the window map. A = 0 or 1; carry: B or START instead of A.
choose::
	xor	a,a
	ld	(choice),a
1$:	push	hl
	push	de
	ld	a,#TILE_SPACE		; off at DE, on at HL
	call	put_tile
	ld	d,h
	ld	e,l
	ld	a,#TILE_CURSOR
	call	put_tile
	pop	de
	pop	hl
2$:	call	wait_frame
	call	read_joypad
	ldh	a,(h_keys_new)
	ld	b,a
	and	a,#KEY_UP | KEY_DOWN
	jr	nz,3$
	ld	a,b
	and	a,#KEY_B | KEY_START
	ld	a,(choice)
	scf
	ret	nz
	bit	0,b			; KEY_A
	jr	z,2$
	or	a,a			; no carry
	ret
3$:	push	hl			; swap the places
	ld	h,d
	ld	l,e
	pop	de
	ld	a,(choice)
	xor	a,#1
	ld	(choice),a
	jr	1$

; START in the world: what the satchel holds, SAVE and CLOSE.
menu_show::
	ld	a,#BOX_MENU
	ld	(box_kind),a
	ld	bc,#(MENU_ROWS << 8) | MENU_WIDTH
	call	box_open
	ld	hl,#text_menu_satchel
	ld	de,#MENU_BAG
	call	put_letters
	ld	hl,#text_menu_empty
	call	carrying
	jr	nz,1$
	ld	hl,#text_menu_parcel
1$:	ld	de,#MENU_ITEM
	call	put_letters
	ld	hl,#text_menu_save
	ld	de,#MENU_SAVE + 2
	call	put_letters
	ld	hl,#text_menu_close
	ld	de,#MENU_CLOSE + 2
	call	put_letters
	ld	hl,#MENU_SAVE
	ld	de,#MENU_CLOSE
	call	choose
	jp	c,box_close
	or	a,a
	jp	nz,box_close
	call	save_write
	ld	hl,#text_menu_saved
	ld	de,#MENU_SAVED
	call	put_letters
	call	wait_button
	jp	box_close

; At the title with a save: A = 0 to continue, 1 for a new game.
title_choose::
	ld	bc,#(TEXT_ROWS << 8) | SCREEN_TILES
	call	box_open
	ld	hl,#text_title_continue
	ld	de,#TEXT_LINE_1 + 2
	call	put_letters
	ld	hl,#text_title_new
	ld	de,#TEXT_LINE_2 + 2
	call	put_letters
1$:	ld	hl,#TEXT_LINE_1
	ld	de,#TEXT_LINE_2
	call	choose
	ret	nc
	ld	c,a
	bit	1,b			; KEY_B changes nothing, START is as good as A
	ld	a,c
	ret	z
	jr	1$
