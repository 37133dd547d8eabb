export interface User {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  /** Further attributes from the credentials. */
  readonly extra?: Readonly<Record<string, readonly string[]>>
  /**
   * The cluster that authenticated this user and alone decides what it may do, in that cluster
   * only. Undefined for users of this server. Name and groups mean nothing outside of the cluster.
   */
  readonly origin?: string
  /** The account that impersonates this user, if any. It is charged for the requests. */
  readonly payer?: string
}

/** The group of all users with valid credentials. */
export const AUTHENTICATED = 'system:authenticated'
export const UNAUTHENTICATED = 'system:unauthenticated'
/** The group that may do everything, whatever the policy says. */
export const MASTERS = 'system:masters'

export const ANONYMOUS: User = { name: 'system:anonymous', groups: [UNAUTHENTICATED] }

/** A process on this host without credentials. */
export const HOST: User = { name: 'system:host', groups: [UNAUTHENTICATED] }

/** Memory overhead of a string or an array. */
const TEXT_BYTES = 32

/** The approximate size of a user in memory. */
export function userMemory({ name, uid = '', groups, extra = {} }: User): number {
  let bytes = 4 * TEXT_BYTES + Buffer.byteLength(name) + Buffer.byteLength(uid)
  for (const group of groups) bytes += TEXT_BYTES + Buffer.byteLength(group)
  for (const [key, values] of Object.entries(extra)) {
    bytes += 2 * TEXT_BYTES + Buffer.byteLength(key)
    for (const value of values) bytes += TEXT_BYTES + Buffer.byteLength(value)
  }
  return bytes
}

export function isMaster(user: User): boolean {
  return user.origin === undefined && user.groups.includes(MASTERS)
}

const ACCOUNTS = 'clusters/'

/**
 * The key by which limits, memory, audit rules and logs distinguish users. A user that a cluster
 * authenticated never has the key of another user, whatever their names are.
 */
export function accountOf({ name, origin }: Pick<User, 'name' | 'origin'>): string {
  if (origin !== undefined) return `${ACCOUNTS}${origin}/${name}`
  // No cluster has an empty name.
  return name.startsWith(ACCOUNTS) ? `${ACCOUNTS}/${name}` : name
}

/** The user as named in the audit log: by its account, and with groups that differ from ours. */
export function auditedUser(user: User): User {
  const { origin, groups } = user
  if (origin === undefined) return user
  const named = groups.map((group) =>
    group === AUTHENTICATED || group === UNAUTHENTICATED
      ? group
      : accountOf({ name: group, origin }),
  )
  return { ...user, name: accountOf(user), groups: named }
}

export function authenticated(user: User): User {
  if (user.groups.includes(AUTHENTICATED)) return user
  return { ...user, groups: [...user.groups, AUTHENTICATED] }
}

const SERVICE_ACCOUNT = 'system:serviceaccount:'

export function serviceAccountUser(namespace: string, name: string): string {
  return `${SERVICE_ACCOUNT}${namespace}:${name}`
}

export function serviceAccountGroups(namespace: string): readonly string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
}

/** Returns undefined when the user is not a service account. */
export function serviceAccountOf(
  user: string,
): { readonly namespace: string; readonly name: string } | undefined {
  if (!user.startsWith(SERVICE_ACCOUNT)) return undefined
  const parts = user.slice(SERVICE_ACCOUNT.length).split(':')
  const [namespace = '', name = ''] = parts
  return parts.length === 2 && namespace !== '' && name !== '' ? { namespace, name } : undefined
}
