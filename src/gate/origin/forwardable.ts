/**
 * Decides which tokens a cluster may see. A token sent to the wrong cluster can be used by that
 * cluster's administrators wherever it is accepted.
 */
import { decodeJwt, type JWTPayload } from 'jose'
import { StatusError } from '../../api/status.ts'
import type { ClusterTokens } from '../../clusters/cluster-sections.ts'
import { NotIdentified } from '../refusal.ts'

/** Tokens of service accounts from before Kubernetes 1.24 have this issuer and no audience. */
const LEGACY_ISSUER = 'kubernetes/serviceaccount'

/** Returns a function that throws a 401 for a token that must not be sent to the cluster. */
export function forwardable(
  cluster: string,
  tokens: ClusterTokens | undefined,
): (token: string) => void {
  const foreign = refusal(
    cluster,
    'its issuer or audience is not one of tokens.issuers and tokens.audiences of that cluster',
  )
  const opaque = refusal(cluster, 'it is not a JWT, and tokens.opaque of that cluster is not true')
  return (token) => {
    const claims = claimsOf(token)
    if (claims === undefined) {
      if (tokens?.opaque !== true) throw opaque
    } else if (tokens === undefined || !isMeantFor(claims, tokens)) throw foreign
  }
}

/** Returns undefined for a token that is not a JWT. The cluster verifies the signature. */
function claimsOf(token: string): JWTPayload | undefined {
  try {
    return decodeJwt(token)
  } catch {
    return undefined
  }
}

function isMeantFor({ iss, aud }: JWTPayload, { issuers, audiences }: ClusterTokens): boolean {
  if (typeof iss !== 'string' || !issuers.includes(iss)) return false
  if (aud === undefined) return iss === LEGACY_ISSUER
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.some((one) => typeof one === 'string' && audiences.includes(one))
}

/** Created once: any client can cause it, and most of the cost of an error is its stack trace. */
function refusal(cluster: string, why: string): NotIdentified {
  const message = `Unauthorized: the token was not sent to cluster ${cluster}: ${why} (clusters file)`
  const made = new NotIdentified('foreign-token', new StatusError('Unauthorized', message))
  Object.freeze(made)
  return made
}
