import type { EventGroup } from '../../api/event-groups.ts'
import { YamlSyntaxError } from '../../lib/text/yaml-documents.ts'
import { type ParsedYaml, parseYaml } from '../yaml/yaml.ts'
import { type DecodedEvent, decodeBody, UnrecognizedBody } from './event-json.ts'

/** Decodes a YAML body. Throws a StatusError: 400, or 413 if the body is too long. */
export function decodeEventYaml(body: Buffer, group: EventGroup): DecodedEvent {
  let repeated: readonly string[] = []
  const { event, problems } = decodeBody(body, group, (text) => {
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
