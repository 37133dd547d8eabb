/** A mirror with `owners: true`, without a Kubernetes API server: test/nightly/mirror/owners.test.ts has one. */
import { describeMirroredOwners } from '../../support/mirrored-owners.ts'
import { OwnedCluster } from '../../support/owned-cluster.ts'

describeMirroredOwners('events of a mirrored cluster with owners', () => OwnedCluster.start())
