# SPDX-License-Identifier: MIT OR Apache-2.0
# Not built here. From a clone: nix build ./packaging/nix (the sources are the clone's root).
{
  description = "How late can this Linux machine be";

  inputs.nixpkgs.url = "nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "riscv64-linux" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
      board = system: system != "x86_64-linux";
    in {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "tailbound";
          version = "0.2.0";
          src = ../..;
          cargoLock.lockFile = ../../Cargo.lock;
          buildAndTestSubdir = "crates/tailbound";
          buildNoDefaultFeatures = board pkgs.stdenv.hostPlatform.system;
          buildFeatures = pkgs.lib.optionals (board pkgs.stdenv.hostPlatform.system) [ "board" ];
          # The tests want root, real-time policies and kernels for the laboratory.
          doCheck = false;
          postInstall = ''
            mkdir -p $out/lib/systemd/system
            for unit in docs/examples/ci/tailbound-{monitor,agent,server}.service packaging/systemd/tailbound-tune.service; do
              sed "s,/usr/local/bin/,$out/bin/," "$unit" > $out/lib/systemd/system/$(basename "$unit")
            done
          '';
          meta = {
            description = "How late can this Linux machine be";
            license = with pkgs.lib.licenses; [ mit asl20 ];
            platforms = systems;
            mainProgram = "tailbound";
          };
        };
      });
    };
}
