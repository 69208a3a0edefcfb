/*
 * Linked into the static program: names of hosts are looked up by /etc/hosts and DNS alone, and
 * home folders in /etc/passwd.
 *
 * A static glibc has these built in. For whatever else /etc/nsswitch.conf names, it would load the
 * machine's libraries, which fit the machine's own glibc only.
 */
#include <nss.h>

__attribute__((constructor)) static void use_what_is_built_in(void)
{
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("passwd", "files");
}
