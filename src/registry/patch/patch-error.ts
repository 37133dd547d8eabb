import { badRequest, entityTooLarge, StatusError } from '../../api/status.ts'

/**
 * A `malformed` patch is invalid for every document; a `failed` one cannot be applied to this
 * document. The others exceed a limit.
 */
export type PatchErrorKind = 'malformed' | 'failed' | 'too-many-operations' | 'too-large'

/** Why a patch could not be applied; the only error that the patch functions throw. */
export class PatchError extends Error {
  override readonly name = 'PatchError'
  readonly kind: PatchErrorKind

  constructor(kind: PatchErrorKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

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
