/** The gRPC statuses with which etcd 3.5 answers: code and text. */

export interface Status {
  readonly code: number
  readonly details: string
}

function status(code: number, details: string): Status {
  return { code, details }
}

export const emptyKey: Status = status(3, 'etcdserver: key is not provided')
/** etcd replies with this to a transaction with an empty operation as well. */
export const keyNotFound: Status = status(3, 'etcdserver: key not found')
export const tooManyOps: Status = status(3, 'etcdserver: too many operations in txn request')
export const duplicateKey: Status = status(3, 'etcdserver: duplicate key given in txn request')
export const tooLarge: Status = status(3, 'etcdserver: request is too large')
export const compacted: Status = status(
  11,
  'etcdserver: mvcc: required revision has been compacted',
)
export const futureRevision: Status = status(
  11,
  'etcdserver: mvcc: required revision is a future revision',
)
export const noSpace: Status = status(8, 'etcdserver: mvcc: database space exceeded')
export const leaseNotFound: Status = status(5, 'etcdserver: requested lease not found')
export const leaseExists: Status = status(9, 'etcdserver: lease already exists')
export const ttlTooLarge: Status = status(11, 'etcdserver: too large lease TTL')
export const noLeader: Status = status(14, 'etcdserver: no leader')
export const leaderChanged: Status = status(14, 'etcdserver: leader changed')
export const timedOut: Status = status(14, 'etcdserver: request timed out')
export const timedOutLeaderFailure: Status = status(
  14,
  'etcdserver: request timed out, possibly due to previous leader failure',
)
/** The error of the context: a proposal waited for a leader until its time was over. */
export const deadlineExceeded: Status = status(4, 'context deadline exceeded')
export const noRangeStream: Status = status(
  12,
  'unknown method RangeStream for service etcdserverpb.KV',
)
export const proposalDropped: Status = status(2, 'raft proposal dropped')

export function messageTooLarge(length: number, max: number): Status {
  return status(8, `grpc: received message larger than max (${length} vs. ${max})`)
}
