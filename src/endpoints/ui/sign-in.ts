/**
 * `POST /ui/sign-in` exchanges the one-time code in the link of `tidings dev` for the token of its
 * user, so that the link opens the page signed in. Only `tidings dev` serves this path.
 */
import { badRequest, methodNotAllowed, StatusError } from '../../api/status.ts'
import { UI_PATH } from '../../gate/server-paths.ts'
import type { Handler, Request } from '../../http/exchange.ts'
import { isObject, type Json, memberOf } from '../../lib/json.ts'
import { parseContentType } from '../request/media-type.ts'
import type { Service } from '../services.ts'
import { withPageHeaders } from './page-headers.ts'

export const SIGN_IN = 'sign-in'

const PATH = `${UI_PATH}/${SIGN_IN}`
const BODY_BYTES_MAX = 1024

export interface SignIn {
  /** Returns the token, or undefined if the code is wrong, was used before, or has expired. */
  redeem(code: string): string | undefined
}

/** Must be installed before the service of the page, which serves a 404 for all other paths. */
export function signInService(signIn: SignIn): Service {
  const handler: Handler = async (request) => {
    if (request.method !== 'POST') throw methodNotAllowed()
    const token = signIn.redeem(await sentCode(request))
    if (token === undefined) throw NOT_VALID
    return withPageHeaders({
      status: 200,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
      body: JSON.stringify({ token }),
    })
  }
  return {
    name: SIGN_IN,
    paths: [],
    isOpenToHost: true,
    isPublic: true,
    isServerWide: true,
    hasSecretBodies: true,
    bodyBytesMax: BODY_BYTES_MAX,
    find: ({ path }) => (path === PATH ? handler : undefined),
  }
}

const NOT_VALID = new StatusError(
  'Unauthorized',
  'the code of this link is wrong, was used before or is older than 10 minutes: enter the token that "tidings dev" printed, or start it again for a new link',
)

/** No error quotes the body. */
async function sentCode(request: Request): Promise<string> {
  if (parseContentType(request.headers['content-type'] ?? '') !== 'application/json') {
    throw new StatusError('UnsupportedMediaType', 'the body must be application/json')
  }
  const body = await request.body(BODY_BYTES_MAX)
  const sent = parsed(body.toString())
  const code = isObject(sent) ? memberOf(sent, 'code') : undefined
  if (typeof code !== 'string') throw badRequest('the body must be {"code":"..."}')
  return code
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
