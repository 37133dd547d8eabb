import type { EventGroup } from '../api/event-groups.ts'
import { type DecodedEvent, decodeSent, UnrecognizedBody } from './event-json.ts'
import { type ParsedYaml, parseYaml } from './yaml.ts'
import { YamlSyntaxError } from './yaml-nodes.ts'

/** An event as a client sent it, in YAML; fails with a StatusError 400, or 413 if it is too long. */
export function decodeEventYaml(body: Buffer, group: EventGroup): DecodedEvent {
  let repeated: readonly string[] = []
  const { event, problems } = decodeSent(body, group, (text) => {
    const parsed = readYaml(text)
    repeated = parsed.problems
    return parsed
  })
  return { event, problems: [...repeated, ...problems] }
}

function readYaml(text: string): ParsedYaml {
  try {
    return parseYaml(text)
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) throw error
    throw new UnrecognizedBody(error.message)
  }
}
