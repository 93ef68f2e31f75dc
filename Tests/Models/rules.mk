# SPDX-License-Identifier: Apache-2.0
#
# Models in Promela of the library's protocols between threads, which SPIN checks exhaustively.

### soak-protocols   checks the SPIN models of the wake word, sources, timers, locks, file descriptors, streams and ports' pages, and that their
###                  broken variants fail

SOAK += protocols
soak-protocols = $(Q)Tests/Models/check-models $(MODEL_FLAGS)
