import { hash } from 'node:crypto'
import type { PresentedCertificate } from '../../http/exchange.ts'
import type { Authenticator } from '../gate.ts'
import { certificateRefused, notIdentified } from '../refusal.ts'
import { authenticated, type User } from '../user.ts'
import type { ClientAuthorities } from './authorities.ts'
import { certificateFacts } from './certificate-facts.ts'

/** The key in `extra` that identifies the credential. */
export const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id'

/**
 * Authenticates client certificates: the common name is the user name, organizations are the
 * groups. Checked for each request, so that a certificate that has expired or whose authority was
 * removed becomes invalid on open connections too.
 */
export function clientCertificates(
  authorities: Pick<ClientAuthorities, 'client'>,
  now: () => number = Date.now,
): Authenticator {
  const users = new WeakMap<PresentedCertificate, User>()
  const find = async (presented: PresentedCertificate): Promise<User | undefined> => {
    if (authorities.client === undefined) return undefined
    const nowMs = now()
    if (!authorities.client.trusts(presented, nowMs)) {
      throw certificateRefused(presented, nowMs)
    }
    let user = users.get(presented)
    if (user === undefined) {
      user = userOf(presented)
      if (user === undefined) return undefined
      users.set(presented, user)
    }
    return user
  }
  return {
    authenticate: async ({ peer }) => {
      const presented = peer.clientCertificate()
      return presented === undefined ? undefined : find(presented)
    },
    reauthenticator: ({ peer }) => {
      const presented = peer.clientCertificate()
      return presented === undefined ? undefined : () => find(presented)
    },
  }
}

/** Returns undefined for a certificate without a common name, since it names no user. */
function userOf({ leaf }: PresentedCertificate): User | undefined {
  const { commonName, organizations, userIds } = certificateFacts(leaf.raw)
  if (commonName === '') return undefined
  const [uid, ...more] = userIds
  if (uid === '' || more.length > 0) throw notIdentified('bad-certificate')
  return authenticated({
    name: commonName,
    ...(uid === undefined ? {} : { uid }),
    groups: organizations,
    extra: { [CREDENTIAL_ID]: [`X509SHA256=${hash('sha256', leaf.raw, 'hex')}`] },
  })
}
