/* SPDX-License-Identifier: Apache-2.0 */
/* The link names of what the files of this add-on share, by which no name of a program meets one of ours. Written by `make symbols`. */
#ifndef CRL_PLIST_LINK_NAMES_H
#define CRL_PLIST_LINK_NAMES_H
#pragma redefine_extname object_table_add crl_object_table_add
#pragma redefine_extname object_table_free crl_object_table_free
#pragma redefine_extname tree_builder_add crl_tree_builder_add
#pragma redefine_extname tree_builder_add_data crl_tree_builder_add_data
#pragma redefine_extname tree_builder_add_key crl_tree_builder_add_key
#pragma redefine_extname tree_builder_add_string crl_tree_builder_add_string
#pragma redefine_extname tree_builder_begin crl_tree_builder_begin
#pragma redefine_extname tree_builder_close crl_tree_builder_close
#pragma redefine_extname tree_builder_end crl_tree_builder_end
#pragma redefine_extname tree_builder_open crl_tree_builder_open
#pragma redefine_extname tree_builder_take crl_tree_builder_take
#pragma redefine_extname tree_check crl_tree_check
#pragma redefine_extname tree_copy crl_tree_copy
#pragma redefine_extname tree_walk_begin crl_tree_walk_begin
#pragma redefine_extname tree_walk_end crl_tree_walk_end
#pragma redefine_extname tree_walk_next crl_tree_walk_next
#pragma redefine_extname tree_walk_pass_over crl_tree_walk_pass_over
#endif
