import { badRequest, entityTooLarge, StatusError } from '../api/status.ts'

/**
 * `malformed`: no document could be patched with this. `failed`: this document cannot. The others
 * ask for more work than one request may.
 */
export type PatchErrorKind = 'malformed' | 'failed' | 'too-many-operations' | 'too-large'

/** Why a patch could not be applied; nothing else comes out of the patch functions. */
export class PatchError extends Error {
  override readonly name = 'PatchError'
  readonly kind: PatchErrorKind

  constructor(kind: PatchErrorKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

/** The answer to a client whose patch this was. */
export function patchStatus(error: PatchError): StatusError {
  switch (error.kind) {
    case 'malformed':
      return badRequest(error.message, error)
    case 'failed':
      return new StatusError('Invalid', error.message, { details: {}, cause: error })
    case 'too-many-operations':
    case 'too-large':
      return entityTooLarge(error.message, error)
  }
}
