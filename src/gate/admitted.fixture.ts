import type { Request } from '../http/exchange.ts'
import type { Attributes } from './attributes.ts'
import type { Access, Caller, Gate, Trail } from './gate.ts'

/** Takes both steps of the gate, as `serve` does. */
export async function admitted(
  gate: Gate,
  request: Request,
  attributes: Attributes,
  { trail, ...access }: Access & { readonly trail?: Trail },
): Promise<Caller> {
  const sender = await gate.authenticate(request, attributes, access, trail)
  return gate.authorize(request, attributes, access, { sender, trail })
}
