#if Cluster
import Testing

/// Tests on real nodes, PostgreSQL and NATS: one after the other, for each takes all that the machine has.
@Suite(.serialized) enum RealClusterTests {}
#endif
