/** Who a request comes from. */
export interface User {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  /** Whatever else the one who vouches for them says. */
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** Everybody who showed valid credentials is in it. */
export const AUTHENTICATED = 'system:authenticated'
export const UNAUTHENTICATED = 'system:unauthenticated'
/** May do everything, whatever the policy says. */
export const MASTERS = 'system:masters'

export const ANONYMOUS: User = { name: 'system:anonymous', groups: [UNAUTHENTICATED] }

/** A process on this host that showed no credentials. */
export const HOST: User = { name: 'system:host', groups: [UNAUTHENTICATED] }

/** What each text and each list takes besides its characters. */
const TEXT_BYTES = 32

/** What a user takes in memory, about. */
export function userMemory({ name, uid = '', groups, extra = {} }: User): number {
  let bytes = 4 * TEXT_BYTES + name.length + uid.length
  for (const group of groups) bytes += TEXT_BYTES + group.length
  for (const [key, values] of Object.entries(extra)) {
    bytes += 2 * TEXT_BYTES + key.length
    for (const value of values) bytes += TEXT_BYTES + value.length
  }
  return bytes
}

export function isMaster(user: User): boolean {
  return user.groups.includes(MASTERS)
}

/** In the group of those who showed who they are, once. */
export function authenticated(user: User): User {
  if (user.groups.includes(AUTHENTICATED)) return user
  return { ...user, groups: [...user.groups, AUTHENTICATED] }
}

const SERVICE_ACCOUNT = 'system:serviceaccount:'

/** As whom a service account shows up. */
export function serviceAccountUser(namespace: string, name: string): string {
  return `${SERVICE_ACCOUNT}${namespace}:${name}`
}

/** The groups that every service account of a namespace is in. */
export function serviceAccountGroups(namespace: string): readonly string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
}

/** Undefined for a user that is none. */
export function serviceAccountOf(
  user: string,
): { readonly namespace: string; readonly name: string } | undefined {
  if (!user.startsWith(SERVICE_ACCOUNT)) return undefined
  const parts = user.slice(SERVICE_ACCOUNT.length).split(':')
  const [namespace = '', name = ''] = parts
  return parts.length === 2 && namespace !== '' && name !== '' ? { namespace, name } : undefined
}
