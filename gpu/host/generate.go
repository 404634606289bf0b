package host

//go:generate sh -c "cd gen && go run . -family panels -isa avx512 -pkg host -out ../panels_avx512_amd64.s -stubs ../panels_avx512_amd64.go -tables ../tables_avx512_amd64.go"
//go:generate sh -c "cd gen && go run . -family panels -isa avx2 -pkg host -out ../panels_avx2_amd64.s -stubs ../panels_avx2_amd64.go -tables ../tables_avx2_amd64.go"
//go:generate sh -c "cd gen && go run . -family plain -isa avx512 -pkg host -out ../plain_avx512_amd64.s -stubs ../plain_avx512_amd64.go"
//go:generate sh -c "cd gen && go run . -family plain -isa avx2 -pkg host -out ../plain_avx2_amd64.s -stubs ../plain_avx2_amd64.go"
//go:generate sh -c "cd gen && go run . -family blocks -isa avx2 -pkg host -out ../blocks_avx2_amd64.s -stubs ../blocks_avx2_amd64.go"
//go:generate sh -c "cd gen && go run . -family blocks -isa avx512 -pkg host -out ../blocks_avx512_amd64.s -stubs ../blocks_avx512_amd64.go"
//go:generate sh -c "cd gen && go run . -family vectors -isa avx512 -pkg host -out ../vector_avx512_amd64.s -stubs ../vector_avx512_amd64.go"
//go:generate sh -c "cd gen && go run . -family vectors -isa avx2 -pkg host -out ../vector_avx2_amd64.s -stubs ../vector_avx2_amd64.go"
//go:generate sh -c "cd gen && go run . -family dots -isa avxvnni -pkg host -out ../dots_avxvnni_amd64.s -stubs ../dots_avxvnni_amd64.go -tables ../tables_avxvnni_amd64.go"
//go:generate sh -c "cd gen && go run ./amx -out ../amx_amd64.s -stubs ../amx_amd64.go"
//go:generate sh -c "cd gen && go run ./arm64 -out ../neon_arm64.s -stubs ../neon_arm64.go -tables ../tables_neon_arm64.go"
