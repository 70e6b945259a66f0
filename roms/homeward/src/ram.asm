; All variables. Names that begin with h_ are in high RAM.
	.module ram

	.area _WRAM			; C000
shadow_oam::	.ds 160			; copied to OAM at every VBlank; page-aligned

; Place and movement of the player, in metatiles
player_map::	.ds 1
player_x::	.ds 1
player_y::	.ds 1
player_facing::	.ds 1			; DOWN UP LEFT RIGHT
step_left::	.ds 1			; frames left of this step, 0 = standing
step_dx::	.ds 1			; pixels a frame, of the player in the world
step_dy::	.ds 1
camera_dx::	.ds 1			; pixels a frame, of the camera
camera_dy::	.ds 1
step_foot::	.ds 1			; bit 0: which foot goes first
player_px::	.ds 1			; pixel place in the world, modulo 256
player_py::	.ds 1
camera_x::	.ds 1			; metatile in the top left corner
camera_y::	.ds 1

; Header of the current map, copied from bank 2 (layout: world.py)
map_header::
map_width::	.ds 1
map_height::	.ds 1
map_cells::	.ds 2
map_metatiles::	.ds 2
map_attributes::.ds 2
map_tiles::	.ds 2
map_tile_count::.ds 1
map_warps::	.ds 2
map_entities::	.ds 2
map_unused::	.ds 1

; A row or column of metatiles, 4 tile numbers each
strip_step::	.ds 1			; from one cell to the next: 1 or the stride
strip_tiles::	.ds 40

save_found::	.ds 1			; 1: the cartridge had a save at power-on

	.area _HRAM			; FF80
h_dma::		.ds 12			; the OAM DMA routine
h_frame::	.ds 1			; set by the VBlank handler
h_keys::	.ds 1			; buttons held
h_keys_new::	.ds 1			; buttons that went down in this frame
h_scx::		.ds 1			; for SCX, SCY, BGP and OBP0 at the next VBlank
h_scy::		.ds 1
h_palette::	.ds 1
h_strip::	.ds 1			; STRIP_NONE, STRIP_ROW or STRIP_COLUMN waits
h_strip_count::	.ds 1			; metatiles in it
h_strip_left::	.ds 1			; counter while it is written
h_strip_to::	.ds 2			; address in the background map
