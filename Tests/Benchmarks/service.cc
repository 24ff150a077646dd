// A Pub/Sub API service that is faster than its clients: it sends recorded events with new IDs.
//
//   service EVENTS SCHEMA.json SCHEMA_ID CERTIFICATE KEY
//
// EVENTS: for each event four bytes of size, little endian, and the payload. The service prints its port, and ends with
// its standard input. Every topic has these events in turn, without end, or as many as the last number on standard input
// says. The event at a position has the replay ID
// `first + position` and an event ID that is computed from the position, so that the harness knows both. A
// subscription keeps to the credit, at most 100 events. Metadata is not looked at.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iostream>
#include <mutex>
#include <vector>

#include "wire.h"

namespace {

constexpr uint64_t first = 0x5A9001;
constexpr int maximumCredit = 100;
constexpr const char *digits = "0123456789abcdef";

uint64_t splitmix(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

void putBigEndian(char *at, uint64_t value) {
  for (int index = 7; index >= 0; index--, value >>= 8) at[index] = char(value);
}

// 32 hexadecimal digits in the groups of a UUID.
void putEventID(char *at, uint64_t position) {
  uint64_t halves[] = {splitmix(2 * position), splitmix(2 * position + 1)};
  int digit = 0;
  for (int index = 0; index < 36; index++) {
    if (index == 8 || index == 13 || index == 18 || index == 23) {
      at[index] = '-';
    } else {
      at[index] = digits[halves[digit / 16] >> (60 - 4 * (digit % 16)) & 15];
      digit++;
    }
  }
}

// A ConsumerEvent as it is sent, and where its IDs are.
struct Event {
  std::string message;
  size_t eventID, replayID;
};

class Corpus {
 public:
  std::string schema, schemaID;
  std::vector<Event> events;

  Corpus(const std::string &path, const std::string &schemaPath, std::string id)
      : schema(wire::fileContent(schemaPath)), schemaID(std::move(id)) {
    std::string file = wire::fileContent(path);
    for (size_t at = 0; at < file.size();) {
      uint32_t size;
      std::memcpy(&size, file.data() + at, 4);
      add(std::string_view(file).substr(at + 4, size));
      at += 4 + size;
    }
  }

  // A FetchResponse of so many events.
  grpc::ByteBuffer response(uint64_t position, int count, int pending) const {
    static const std::string rpcID(36, '0');
    std::string rest;
    char latest[10] = {};
    putBigEndian(latest, first + position + count - 1);
    wire::appendBytes(rest, 2, {latest, 10});
    wire::appendBytes(rest, 3, rpcID);
    if (pending) wire::appendNumber(rest, 4, pending);
    size_t size = rest.size();
    for (int index = 0; index < count; index++) size += at(position + index).message.size();
    grpc::Slice slice(size);
    char *to = (char *)slice.begin();
    for (int index = 0; index < count; index++) {
      const Event &event = at(position + index);
      std::memcpy(to, event.message.data(), event.message.size());
      putEventID(to + event.eventID, position + index);
      putBigEndian(to + event.replayID, first + position + index);
      to += event.message.size();
    }
    std::memcpy(to, rest.data(), rest.size());
    return {&slice, 1};
  }

 private:
  const Event &at(uint64_t position) const { return events[position % events.size()]; }

  void add(std::string_view payload) {
    std::string producer, consumer, whole;
    wire::appendBytes(producer, 1, std::string(36, '-'));
    wire::appendBytes(producer, 2, schemaID);
    wire::appendBytes(producer, 3, payload);
    wire::appendBytes(consumer, 1, producer);
    size_t inner = consumer.size() - producer.size();
    wire::appendBytes(consumer, 2, std::string(10, '\0'));
    wire::appendBytes(whole, 1, consumer);
    size_t outer = whole.size() - consumer.size();
    events.push_back({whole, outer + inner + 2, whole.size() - 10});
  }
};

const Corpus *corpus;
std::atomic<uint64_t> limit = UINT64_MAX;

class Call : public grpc::ServerGenericBidiReactor {
 public:
  explicit Call(std::string method) : method_(std::move(method)) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (method_ != "/eventbus.v1.PubSub/Subscribe") return answer(ok);
    std::unique_lock lock(mutex_);
    if (!ok) {
      if (!writing_) finish(lock);
      return;
    }
    wire::Reader reader(wire::flatten(request_, text_).substr(0, request_.Length()));
    uint64_t credit = 0, preset = 0, replayID = 0;
    while (reader.next()) {
      if (reader.field == 2) preset = reader.number;
      if (reader.field == 4) credit = reader.number;
      if (reader.field == 3) {
        for (char byte : reader.bytes.substr(0, 8)) replayID = replayID << 8 | uint8_t(byte);
      }
    }
    if (!begun_) {
      begun_ = true;
      position_ = preset == 2 ? replayID - first + 1 : 0;
    }
    credit_ = int(std::min<uint64_t>(maximumCredit, credit_ + credit));
    send();
    StartRead(&request_);
  }

  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    writing_ = false;
    if (!ok) return finish(lock);
    send();
  }

  void OnDone() override { delete this; }

 private:
  void answer(bool ok) {
    if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "no request"});
    std::string message;
    if (method_ == "/eventbus.v1.PubSub/GetSchema") {
      wire::appendBytes(message, 1, corpus->schema);
      wire::appendBytes(message, 2, corpus->schemaID);
    } else if (method_ == "/eventbus.v1.PubSub/GetTopic") {
      wire::Reader reader(wire::flatten(request_, text_).substr(0, request_.Length()));
      while (reader.next()) wire::appendBytes(message, reader.field, reader.bytes);
      wire::appendNumber(message, 4, 1);
      wire::appendBytes(message, 5, corpus->schemaID);
    } else {
      return Finish({grpc::StatusCode::UNIMPLEMENTED, method_});
    }
    response_ = wire::buffer(message);
    StartWriteAndFinish(&response_, {}, grpc::Status::OK);
  }

  void send() {
    uint64_t end = limit;
    if (writing_ || finished_ || credit_ == 0 || position_ >= end) return;
    int count = int(std::min<uint64_t>(credit_, end - position_));
    credit_ -= count;
    response_ = corpus->response(position_, count, credit_);
    position_ += count;
    writing_ = true;
    StartWrite(&response_);
  }

  void finish(std::unique_lock<std::mutex> &lock) {
    if (finished_) return;
    finished_ = true;
    lock.unlock();
    Finish(grpc::Status::OK);
  }

  const std::string method_;
  std::string text_;
  grpc::ByteBuffer request_, response_;
  std::mutex mutex_;
  int credit_ = 0;
  uint64_t position_ = 0;
  bool begun_ = false, writing_ = false, finished_ = false;
};

class Service : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor *CreateReactor(grpc::GenericCallbackServerContext *context) override {
    return new Call(context->method());
  }
};

}  // namespace

int main(int count, char **arguments) {
  if (count != 6) wire::fail("service EVENTS SCHEMA.json SCHEMA_ID CERTIFICATE KEY");
  corpus = new Corpus(arguments[1], arguments[2], arguments[3]);
  grpc::SslServerCredentialsOptions identity;
  identity.pem_key_cert_pairs.push_back({wire::fileContent(arguments[5]), wire::fileContent(arguments[4])});
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(identity), &port);
  builder.RegisterCallbackGenericService(&service);
  auto server = builder.BuildAndStart();
  std::printf("%d\n", port);
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    limit = std::stoull(line);
    std::printf("limited\n");
    std::fflush(stdout);
  }
  std::_Exit(0);
}
