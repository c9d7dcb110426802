/**
 * A plugin of buf: writes the protos' comments to `src/gen/comments.json`, by the full names of what they stand at. The
 * generated descriptors have none, and the pages that partners and brokers read are made of them.
 */
import { createEcmaScriptPlugin, getComments, runNodeJs } from '@bufbuild/protoplugin';

runNodeJs(
  createEcmaScriptPlugin({
    name: 'protoc-gen-comments',
    version: 'v1',
    generateTs: ({ files, generateFile }) => {
      const comments: Record<string, string> = {};
      const take = (name: string, desc: Parameters<typeof getComments>[0]) => {
        const comment = getComments(desc).leading;
        if (comment !== undefined) comments[name] = comment.replace(/^ /gm, '').trim();
      };
      for (const file of files.filter(({ proto }) =>
        /^marina\.(gateway|options|broker|admin|fix)\./.test(proto.package),
      )) {
        for (const service of file.services) {
          take(service.typeName, service);
          for (const method of service.methods) take(`${service.typeName}.${method.name}`, method);
        }
        // Of operators' calls only a list is made.
        if (/^marina\.(admin|fix)\./.test(file.proto.package)) continue;
        for (const each of file.enums) {
          take(each.typeName, each);
          for (const value of each.values) take(`${each.typeName}.${value.name}`, value);
        }
        for (const message of file.messages) {
          take(message.typeName, message);
          for (const field of message.fields) take(`${message.typeName}.${field.name}`, field);
        }
      }
      generateFile('comments.json').print(JSON.stringify(comments, undefined, 1));
    },
  }),
);
