################################################################################
#
# tailbound
#
################################################################################

TAILBOUND_VERSION = 0.2.0
# The folder of the sources: the project has no public page yet.
TAILBOUND_SITE = $(TAILBOUND_SOURCES)
TAILBOUND_SITE_METHOD = local
TAILBOUND_LICENSE = MIT or Apache-2.0
TAILBOUND_LICENSE_FILES = LICENSE-MIT LICENSE-APACHE
TAILBOUND_SUBDIR = crates/tailbound
TAILBOUND_CARGO_BUILD_OPTS = --no-default-features --features board --bin tailbound
TAILBOUND_CARGO_INSTALL_OPTS = --no-default-features --features board --bin tailbound

define TAILBOUND_INSTALL_INIT_SYSTEMD
	$(INSTALL) -d $(TARGET_DIR)/usr/lib/systemd/system
	sed -e 's,/usr/local/bin/,/usr/bin/,' $(@D)/docs/examples/ci/tailbound-monitor.service \
		> $(TARGET_DIR)/usr/lib/systemd/system/tailbound-monitor.service
endef

$(eval $(cargo-package))
