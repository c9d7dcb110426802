/** How many bytes a request's body, or its protobuf message, may have. */
export const maxBodyBytes = 16_384;
