// What hand-written C++ can do: gRPC over TLS, Avro to lines, zstd level 1, a file. It neither resumes nor repairs.
//
//   bound TARGET CERTIFICATE TOPIC EVENTS SCHEMA.json DIRECTORY content|promise
//
// `content`: a line per event, without the columns `_topic`, `_event_id` and `_kind`; neither hashed nor synced.
// `promise`: the lines that pubsub-etl writes by default, and what it does for them: SHA-256 of the file, and once a
// second the lines so far are durable (fdatasync), and then the position is (fsync and rename of a small file).
//
// Two threads, with a queue of 64 responses between them. Credit is given back before a response is decoded.
#include <fcntl.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <zstd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "encoder.h"

namespace {

using Clock = std::chrono::steady_clock;
using wire::fail;

void check(bool holds, const char *what) {
  if (!holds) fail(std::string(what) + ": " + std::strerror(errno));
}

void writeAll(int file, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(file, bytes, count);
    check(written > 0, "write");
    bytes += written;
    count -= size_t(written);
  }
}

// Lines in, a compressed file out.
class File {
 public:
  File(const std::string &directory, bool isPromise) : directory_(directory), isPromise_(isPromise) {
    temporary_ = isPromise ? directory + "/.lines.ndjson.zst.part" : directory + "/lines.ndjson.zst";
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    check(file_ >= 0, "open");
    lines_.resize(16 << 20);
    compressed_.resize(1 << 20);
    ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, 1);
    EVP_DigestInit_ex(digest_, EVP_sha256(), nullptr);
    out.at = lines_.data();
  }

  lines::Output out;

  // Makes room for so many bytes.
  void reserve(size_t bytes) {
    if (used() + bytes + lines::padding > lines_.size()) compress(ZSTD_e_continue);
    if (bytes + lines::padding > lines_.size()) fail("an event is too large for the bound");
  }

  // Is called after each response.
  void responseIsOver(const std::string &position) {
    if (used() > 256 << 10) compress(ZSTD_e_continue);
    if (!isPromise_ || Clock::now() - committed_ < std::chrono::seconds(1)) return;
    compress(ZSTD_e_flush);
    check(fdatasync(file_) == 0, "fdatasync");
    storePosition(position);
    committed_ = Clock::now();
  }

  void finish(const std::string &position) {
    compress(ZSTD_e_end);
    if (!isPromise_) return;
    check(fsync(file_) == 0, "fsync");
    check(rename(temporary_.c_str(), (directory_ + "/lines.ndjson.zst").c_str()) == 0, "rename");
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(digest_, digest, &size);
    std::string line;
    char hex[3];
    for (unsigned index = 0; index < size; index++) line += (std::snprintf(hex, 3, "%02x", digest[index]), hex);
    storePosition(position + " " + line);
  }

 private:
  const std::string directory_;
  const bool isPromise_;
  std::string temporary_;
  int file_;
  std::vector<char> lines_, compressed_;
  ZSTD_CCtx *compressor_ = ZSTD_createCCtx();
  EVP_MD_CTX *digest_ = EVP_MD_CTX_new();
  Clock::time_point committed_ = Clock::now();

  size_t used() const { return size_t(out.at - lines_.data()); }

  void compress(ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{lines_.data(), used(), 0};
    for (bool isDone = false; !isDone;) {
      ZSTD_outBuffer to{compressed_.data(), compressed_.size(), 0};
      size_t left = ZSTD_compressStream2(compressor_, &to, &in, directive);
      if (ZSTD_isError(left)) fail(ZSTD_getErrorName(left));
      if (isPromise_) EVP_DigestUpdate(digest_, compressed_.data(), to.pos);
      if (to.pos) writeAll(file_, compressed_.data(), to.pos);
      isDone = directive == ZSTD_e_continue ? in.pos == in.size : left == 0;
    }
    out.at = lines_.data();
  }

  void storePosition(const std::string &position) {
    std::string path = directory_ + "/position", next = path + ".new";
    int file = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    check(file >= 0, "open");
    writeAll(file, position.data(), position.size());
    check(fsync(file) == 0, "fsync");
    close(file);
    check(rename(next.c_str(), path.c_str()) == 0, "rename");
    int directory = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(directory >= 0 && fsync(directory) == 0, "fsync");
    close(directory);
  }
};

// Decodes responses.
class Consumer {
 public:
  uint64_t events = 0;

  Consumer(const std::string &schema, lines::Options options, const std::string &directory)
      : encoder_(schema, options), file_(directory, options.isComplete) {}

  void take(const grpc::ByteBuffer &message) {
    wire::Reader response(wire::flatten(message, bytes_, lines::padding));
    while (response.next()) {
      if (response.field != 1) continue;
      std::string_view id, schemaID, payload, replayID;
      wire::Reader consumer(response.bytes);
      while (consumer.next()) {
        if (consumer.field == 2) replayID = consumer.bytes;
        if (consumer.field != 1) continue;
        wire::Reader producer(consumer.bytes);
        while (producer.next()) {
          if (producer.field == 1) id = producer.bytes;
          if (producer.field == 2) schemaID = producer.bytes;
          if (producer.field == 3) payload = producer.bytes;
        }
      }
      file_.reserve(encoder_.read(payload));
      encoder_.write(id, schemaID, replayID, file_.out);
      position_.assign(replayID);
      events++;
    }
    file_.responseIsOver(position_);
  }

  void finish() { file_.finish(position_); }

 private:
  lines::Encoder encoder_;
  File file_;
  std::string bytes_, position_;
};

// Responses on their way from one thread to the other.
class Queue {
 public:
  void put(grpc::ByteBuffer message) {
    std::unique_lock lock(mutex_);
    hasRoom_.wait(lock, [&] { return messages_.size() < 64; });
    messages_.push_back(std::move(message));
    hasMessage_.notify_one();
  }

  void close() {
    std::unique_lock lock(mutex_);
    isClosed_ = true;
    hasMessage_.notify_one();
  }

  // False at the end.
  bool take(grpc::ByteBuffer &message) {
    std::unique_lock lock(mutex_);
    hasMessage_.wait(lock, [&] { return !messages_.empty() || isClosed_; });
    if (messages_.empty()) return false;
    message = std::move(messages_.front());
    messages_.pop_front();
    hasRoom_.notify_one();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable hasRoom_, hasMessage_;
  std::deque<grpc::ByteBuffer> messages_;
  bool isClosed_ = false;
};

// Reads so many events with a credit of 100, and hands the responses over.
void receive(const std::string &target, const std::string &certificate, const std::string &topic, uint64_t events,
             Queue &queue) {
  enum Tag : intptr_t { started = 1, written, received };
  grpc::SslCredentialsOptions authority;
  authority.pem_root_certs = wire::fileContent(certificate);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(target, grpc::SslCredentials(authority), arguments));
  grpc::ClientContext context;
  for (auto key : {"accesstoken", "tenantid", "instanceurl"}) context.AddMetadata(key, "benchmark");
  grpc::CompletionQueue completions;
  auto call = stub.PrepareCall(&context, "/eventbus.v1.PubSub/Subscribe", &completions);
  void *tag;
  bool ok;
  call->StartCall((void *)started);
  if (!completions.Next(&tag, &ok) || !ok) fail("the service does not answer");

  std::string more, first;
  wire::appendNumber(more, 4, 100);
  wire::appendBytes(first, 1, topic);
  wire::appendNumber(first, 2, 1);
  first += more;
  bool isWriting = true;
  int owed = 0;
  grpc::ByteBuffer message, response;
  call->Write(wire::buffer(first), (void *)written);
  call->Read(&message, (void *)received);
  for (uint64_t count = 0; count < events && completions.Next(&tag, &ok);) {
    if (!ok) fail("the stream ended");
    if (tag == (void *)received) {
      count += 100;
      response.Swap(&message);
      if (count < events) {
        call->Read(&message, (void *)received);
        owed++;
      }
    } else {
      isWriting = false;
    }
    if (owed && !isWriting) {
      owed--;
      isWriting = true;
      call->Write(wire::buffer(more), (void *)written);
    }
    if (tag == (void *)received) queue.put(std::move(response));
  }
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 8) fail("bound TARGET CERTIFICATE TOPIC EVENTS SCHEMA.json DIRECTORY content|promise");
  uint64_t events = std::stoull(arguments[4]);
  Consumer consumer(wire::fileContent(arguments[5]), {arguments[3], std::string_view(arguments[7]) == "promise"},
                    arguments[6]);
  Queue queue;
  std::thread worker([&] {
    grpc::ByteBuffer message;
    while (queue.take(message)) consumer.take(message);
    consumer.finish();
  });
  // The queue outlives the call, whose end would wait for the service.
  std::thread([&] {
    receive(arguments[1], arguments[2], arguments[3], events, queue);
    queue.close();
    pause();
  }).detach();
  worker.join();
  if (consumer.events != events) fail("received " + std::to_string(consumer.events) + " events");
  std::_Exit(0);
}
