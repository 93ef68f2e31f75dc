/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the library is installed: rule 1016. */
#include "CRLNetwork.h"
#include "CRLStreamNetwork.h"
#include "Stream/Connection/stream_connection.h"
#include "harness.h"

TEST(the_library_is_installed_by_being_there, "1016")
{
    static const CRLStreamNetwork another;
    const CRLStreamNetwork *installed = connection_network();

    REQUIRE(installed);
    EXPECT(installed->resolve && installed->createSession);
    CRLStreamSetNetwork(&another);
    CRLNetworkInstall();
    EXPECT(connection_network() == installed);
}
